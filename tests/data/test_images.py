"""Images against Keras' own reader, and files of every odd kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from PIL import Image

import stoker
from stoker.errors import ArgumentError


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twelve images of two classes, all 20 x 16."""
    random = np.random.default_rng(0)
    for number in range(12):
        folder = tmp_path / "photos" / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (20, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.{('jpg', 'png')[number % 3 == 0]}")
    return tmp_path / "photos"


def _all(dataset: Any) -> tuple[Any, Any]:
    batches = [(images.numpy(), labels.numpy()) for images, labels in dataset]
    return np.concatenate([one for one, _ in batches]), np.concatenate([two for _, two in batches])


@pytest.mark.parametrize("size", [(20, 16), (10, 12)])
def test_images_are_those_keras_reads(photos: Path, size: tuple[int, int]) -> None:
    peer = keras.utils.image_dataset_from_directory(photos, image_size=size, shuffle=False, verbose=False)
    images, labels = _all(stoker.data.images(photos, image_size=size, shuffle=False))
    expected, classes = _all(peer)
    assert images.dtype == np.uint8
    assert np.array_equal(labels, classes)
    assert np.abs(images - expected).max() <= 0.5


def test_shuffled_epochs_are_complete_and_differ(photos: Path) -> None:
    dataset = stoker.data.images(photos, batch_size=5, seed=2)
    assert dataset.class_names == ["cat", "dog"]
    plain, labels = _all(stoker.data.images(photos, shuffle=False))
    known = {one.tobytes(): label for one, label in zip(plain, labels, strict=True)}
    orders = []
    for _ in range(2):
        images, classes = _all(dataset)
        assert {one.tobytes(): label for one, label in zip(images, classes, strict=True)} == known
        orders.append([one.tobytes() for one in images])
    assert orders[0] != orders[1]


def test_grey_cmyk_and_transparent_images(tmp_path: Path) -> None:
    folder = tmp_path / "photos" / "all"
    folder.mkdir(parents=True)
    square: Any = np.full((8, 8), 200, np.uint8)
    Image.fromarray(square).save(folder / "grey.png")
    Image.fromarray(np.dstack([square] * 4)).save(folder / "alpha.png")
    Image.fromarray(np.dstack([square] * 3)).convert("CMYK").save(folder / "cmyk.jpg")
    images, _ = _all(stoker.data.images(tmp_path / "photos", shuffle=False))
    assert images.shape == (3, 8, 8, 3)
    assert np.abs(images.astype(int) - 200).max() <= 3
    grey, _ = _all(stoker.data.images(tmp_path / "photos", shuffle=False, color_mode="grayscale"))
    assert grey.shape == (3, 8, 8, 1)


def test_a_damaged_image_is_named_or_skipped_and_counted(photos: Path) -> None:
    whole = (photos / "cat" / "02.jpg").read_bytes()
    (photos / "cat" / "02.jpg").write_bytes(whole[: len(whole) // 2])
    (photos / "dog" / "05.jpg").write_bytes(b"no image")
    with pytest.raises(ArgumentError, match=r"02\.jpg cannot be decoded"):
        stoker.data.images(photos)
    with pytest.warns(stoker.data.DataWarning, match="left out"):
        dataset = stoker.data.images(photos, on_error="skip", shuffle=False)
    assert dataset.skipped == 2
    images, labels = _all(dataset)
    assert len(images) == dataset.rows == 10
    assert labels.tolist() == [0] * 5 + [1] * 5


def test_sizes_that_differ_need_a_size(photos: Path) -> None:
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(photos / "dog" / "small.png")
    with pytest.raises(ArgumentError, match=r"small\.png is 4 x 4, others are 20 x 16: give image_size="):
        stoker.data.images(photos)


def test_augmentation_changes_training_images_only_and_repeats(photos: Path) -> None:
    def make() -> Any:
        return stoker.data.images(
            photos, batch_size=4, seed=3, validation_split=0.25, augment=["flip", "brightness"]
        )

    plain = {one.tobytes() for one in _all(stoker.data.images(photos))[0]}
    train, held_out = make()
    assert {one.tobytes() for one in _all(held_out)[0]} <= plain
    first, second = _all(train)[0], _all(train)[0]
    assert any(one.tobytes() not in plain for one in first)
    assert not np.array_equal(first, second)
    again, _ = make()
    assert np.array_equal(_all(again)[0], first)


def test_label_modes_and_bad_arguments(photos: Path) -> None:
    _, labels = _all(stoker.data.images(photos, label_mode="categorical", shuffle=False))
    assert labels.shape == (12, 2)
    assert stoker.data.images(photos, label_mode=None).element_spec.dtype == "uint8"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"image_size": 5}, "must be \\(height, width\\)"),
        ({"color_mode": "cmyk"}, "none of rgb"),
        ({"augment": ["flop"]}, "'flop' is none of flip"),
        ({"augment": "flip"}, "must be a list"),
        ({"on_error": "ignore"}, "'raise' or 'skip'"),
        ({"label_mode": "text"}, "none of int"),
    ]
    for options, words in wrong:
        with pytest.raises(ArgumentError, match=words):
            stoker.data.images(photos, **options)
    with pytest.raises(ArgumentError, match="there is no folder"):
        stoker.data.images(photos / "none")
