"""Images against Keras' own reader, and files of every odd kind."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import stoker
from stoker.data.augmenting import CHANGES
from stoker.data.class_folders import class_files
from stoker.data.paths import IMAGES
from stoker.data.survey import survey
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


@pytest.mark.filterwarnings("ignore::stoker.data.DataWarning")
def test_workers_change_an_image_alike(photos: Path) -> None:
    for number, file in enumerate(sorted(photos.rglob("*.*"))):
        (photos / f"class {number:02}").mkdir()
        file.rename(photos / f"class {number:02}" / file.name)
    for folder in ("cat", "dog"):
        (photos / folder).rmdir()

    def read(**options: Any) -> dict[int, bytes]:
        """By the number of the class, which here tells the images apart."""
        images, labels = _all(stoker.data.images(photos, augment=list(CHANGES), seed=3, **options))
        return {label: image.tobytes() for image, label in zip(images, labels, strict=True)}

    with pytest.warns(stoker.data.DataWarning, match="class 'class 00' of .* has a single example"):
        together = read(batch_size=6)
    assert together == read(batch_size=3, shard=(0, 2)) | read(batch_size=3, shard=(1, 2))


ONE_BY_ONE: dict[str, Callable[[Any, float], Any]] = {
    "flip": lambda image, u: tf.image.flip_left_right(image) if u < 0.5 else image,
    "flip_vertical": lambda image, u: tf.image.flip_up_down(image) if u < 0.5 else image,
    "brightness": lambda image, u: tf.image.adjust_brightness(image, 0.4 * u - 0.2),
    "contrast": lambda image, u: tf.image.adjust_contrast(image, 0.8 + 0.4 * u),
    "saturation": lambda image, u: tf.image.adjust_saturation(image, 0.8 + 0.4 * u),
    "hue": lambda image, u: tf.image.adjust_hue(image, 0.1 * u - 0.05),
}


@pytest.mark.parametrize("name", list(ONE_BY_ONE))
def test_a_batch_is_changed_as_tf_image_changes_each_image(name: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 8, 6, 3), dtype=np.uint8)
    draws = [0.0, 0.2, 0.5, 0.7, 0.99]
    changed = CHANGES[name](tf.constant(images), lambda what: tf.constant(draws)).numpy().astype(int)
    for image, draw, found in zip(images, draws, changed, strict=True):
        expected = ONE_BY_ONE[name](tf.constant(image), draw).numpy().astype(int)
        assert np.abs(found - expected).max() <= 1


def test_a_crop_keeps_seven_eighths() -> None:
    ramp = np.broadcast_to(np.arange(64, dtype=np.uint8)[:, None, None] * 4, (2, 64, 64, 3)).copy()
    top, bottom = CHANGES["crop"](tf.constant(ramp), lambda what: tf.constant([0.0, 1.0])).numpy()
    assert (top[0, 0, 0], bottom[-1, 0, 0]) == (0, 252)
    assert int(top[-1, 0, 0]) == pytest.approx(0.875 * 252, abs=1)
    assert int(bottom[0, 0, 0]) == pytest.approx(0.125 * 252, abs=1)


def test_nested_and_hidden_files(photos: Path) -> None:
    inside = photos / "cat" / "sub.png" / "deeper"
    inside.mkdir(parents=True)
    (photos / "cat" / "02.jpg").rename(inside / "02.jpg")
    for hidden in (".thumbnails", "__MACOSX", "cat/.kept", "cat/__MACOSX"):
        (photos / hidden).mkdir()
        (photos / hidden / "00.png").write_bytes(b"no image")
    (photos / "dog" / "._01.jpg").write_bytes(b"no image")
    dataset = stoker.data.images(photos)
    assert (dataset.rows, dataset.class_names) == (12, ["cat", "dog"])
    assert survey(str(photos))["rows"] == 12


@pytest.mark.parametrize("target", ["self.png", "gone.png"])
def test_a_link_that_leads_nowhere_is_named(photos: Path, target: str) -> None:
    (photos / "cat" / "self.png").symlink_to(target)
    with pytest.raises(ArgumentError, match=r"self\.png is a broken link: repair or remove it"):
        stoker.data.images(photos)


def test_a_folder_that_may_not_be_read_is_named(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(
        ArgumentError, match=r"cannot be read \(Permission denied\): make it readable, or remove"
    ):
        class_files(photos, IMAGES)


def test_a_link_to_a_folder_is_not_followed(photos: Path) -> None:
    (photos / "cat" / "up.png").symlink_to("..", target_is_directory=True)
    assert stoker.data.images(photos).rows == 12


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are text")
def test_names_that_are_not_utf_8(photos: Path) -> None:
    (photos / "cat" / "02.jpg").rename(os.fsdecode(bytes(photos / "cat") + b"/\xff.jpg"))
    assert len(_all(stoker.data.images(photos))[0]) == 12
    (photos / "dog").rename(os.fsdecode(bytes(photos) + b"/\xff\xfe"))
    with pytest.raises(ArgumentError, match=r"the folder b'\\xff\\xfe' .* not UTF-8: rename it"):
        stoker.data.images(photos)


def test_images_of_kinds_that_are_not_read_are_told_of_once(photos: Path) -> None:
    for name in ("a.webp", "b.WEBP", "c.tif", "notes.md"):
        (photos / "cat" / name).write_bytes(b"")
    said = r"1 \.tif file and 2 \.webp files in .* are left out: convert to PNG or JPEG"
    with pytest.warns(stoker.data.DataWarning, match=said):
        assert stoker.data.images(photos).rows == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.data.images(photos)
    for file in (photos / "dog").iterdir():
        file.rename(file.with_suffix(".webp"))
    with pytest.raises(ArgumentError, match=r"dog holds no .*, only 6 \.webp files: convert to PNG"):
        stoker.data.images(photos)


def test_a_bitmap_of_one_bit_is_of_a_kind_that_is_not_read(photos: Path) -> None:
    Image.fromarray(np.zeros((20, 16), bool)).save(photos / "cat" / "bits.bmp")
    with pytest.raises(
        ArgumentError, match=r"bits\.bmp cannot .* or of a kind TensorFlow cannot read; convert"
    ):
        stoker.data.images(photos)


def test_label_modes_and_bad_arguments(photos: Path) -> None:
    _, labels = _all(stoker.data.images(photos, label_mode="categorical", shuffle=False))
    assert labels.shape == (12, 2)
    assert stoker.data.images(photos, label_mode=None).element_spec.dtype == "uint8"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"image_size": 5}, "must be \\(height, width\\)"),
        ({"color_mode": "cmyk"}, "must be 'rgb' or"),
        ({"augment": ["flop"]}, "'flop' is not one of flip"),
        ({"augment": "flip"}, "must be a list"),
        ({"augment": ["hue"], "color_mode": "grayscale"}, "'hue' changes colours"),
        ({"on_error": "ignore"}, "'raise' or 'skip'"),
        ({"label_mode": "text"}, "must be 'int', 'categorical'"),
    ]
    for options, words in wrong:
        with pytest.raises(ArgumentError, match=words):
            stoker.data.images(photos, **options)
    with pytest.raises(ArgumentError, match="there is no folder"):
        stoker.data.images(photos / "none")
