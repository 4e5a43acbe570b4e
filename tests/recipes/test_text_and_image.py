"""`stoker.recipes.text` and `.image`: from folders to bundles that take raw texts and images."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.recipes.programs import image, text
from tests.recipes.base_weights import base_weights
from tests.recipes.data_files import reviews, shapes
from tests.support import ALL_CASES


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow
def test_texts_of_folders(tmp_path: Path) -> None:
    reviews(tmp_path / "reviews")
    result = stoker.recipes.text("reviews", epochs=8)
    assert result is not None
    assert set(result["networks"]) == {"mean", "gru"}
    assert result["network"] == min(result["networks"], key=lambda name: result["networks"][name]["loss"])
    assert {one["name"] for one in result["contenders"]} == {"network", "constant", "TF-IDF + linear"}
    predictor = stoker.Predictor(result["bundle"])
    assert predictor.predict({"text": "the film was great and lovely"})["label"] == "good"
    assert predictor.predict({"text": "a dull and poor film"})["label"] == "bad"
    assert "TF-IDF" in Path(result["report"]).read_text()


@pytest.mark.parametrize("kind", ["mean", "gru"])
def test_a_text_without_words_has_an_answer(kind: str) -> None:
    vectorization = SimpleNamespace(vocabulary_size=lambda: 9)
    train = SimpleNamespace(class_names=["bad", "good"], vectorization=vectorization)
    model = text.network(kind, train, text.Settings(data="reviews", run="runs/x", width=4))
    some = np.array([[3, 4, 5], [0, 0, 0], [1, 0, 0]])
    answers = np.asarray(model(some))
    assert np.isfinite(answers).all()
    # It is one unknown word; and padding says nothing.
    np.testing.assert_allclose(answers[1], answers[2], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(model(some[1:2, :0])), answers[1:2], rtol=1e-5)


@pytest.mark.slow
def test_images_from_scratch(tmp_path: Path) -> None:
    shapes(tmp_path / "photos")
    result = stoker.recipes.image("photos", epochs=10)
    assert result is not None
    assert result["contenders"][0]["scores"]["accuracy"]["value"] > 0.8
    assert result["settings"]["size"] == (12, 12)
    assert result["settings"]["color_mode"] == "grayscale"
    pixels: Any = np.full((12, 12, 1), 20, np.uint8)
    pixels[5] = 220
    answer = stoker.Predictor(result["bundle"]).predict(pixels[None])
    assert answer["scores"].shape == (1, 2)
    assert {one["name"] for one in result["contenders"]} == {
        "network",
        "constant",
        "linear",
        "support vectors",
    }


def test_colour_images_that_are_there_twice_are_counted(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    for name in ("one", "other"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(12):
            content = tf.io.encode_png(random.integers(0, 256, (8, 8, 3)).astype(np.uint8)).numpy()
            for copy in ("a", "b"):
                (tmp_path / "photos" / name / f"{number:02}{copy}.png").write_bytes(content)
    result = stoker.recipes.image("photos", epochs=1)
    assert result is not None
    assert "crop" in result["settings"]["augment"]
    assert result["repeated"] > 0
    assert "also among the training rows" in Path(result["report"]).read_text()


@pytest.mark.parametrize("kind", ["text", "image"])
def test_files_in_nested_folders_count_and_make_another_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = (reviews if kind == "text" else shapes)(tmp_path / "data")
    for inside in list(folder.iterdir()):
        inside.rename(tmp_path / inside.name)
        inside.mkdir()
        (tmp_path / inside.name).rename(inside / "sub")
    target = text if kind == "text" else image
    monkeypatch.setattr(target, "main", lambda settings, budget: dataclasses.asdict(settings))

    def run() -> Any:
        made = getattr(stoker.recipes, kind)("data")
        assert made is not None
        return made["run"]

    before = run()
    assert run() == before
    changed = min(folder.rglob("*.*"))
    os.utime(changed, (1, 1))
    assert run() != before


def test_other_weights_of_a_base_are_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes(tmp_path / "photos", each=12, size=32)
    monkeypatch.setattr(image, "main", lambda settings, budget: dataclasses.asdict(settings))
    weights = base_weights()

    def run() -> Any:
        made = stoker.recipes.image("photos", size=(32, 32), base="MobileNet", weights=weights)
        assert made is not None
        return made["run"]

    before = run()
    assert run() == before
    os.utime(weights, (1, 1))
    assert run() != before


def test_a_base_is_frozen_first_then_free_at_its_top() -> None:
    settings = image.Settings(
        data="photos",
        run="runs/x",
        size=(32, 32),
        base="MobileNet",
        family="mobilenet",
        weights=base_weights(),
    )
    train = SimpleNamespace(class_names=["across", "down"])
    head, top = (image.network(phase, train, settings) for phase in ("head", "top"))
    assert [weight.name for weight in head.trainable_weights] == ["kernel", "bias"]
    assert 2 < len(top.trainable_weights) < 20
    assert not any(weight.name == "gamma" for weight in top.trainable_weights)
    for one, other in zip(head.weights[:-2], top.weights[:-2], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.skipif(not ALL_CASES, reason="costly, and much like the others: make soak-cases")
def test_images_on_a_base_whose_weights_are_in_a_file(tmp_path: Path) -> None:
    shapes(tmp_path / "photos", each=12, size=32)
    result = stoker.recipes.image("photos", size=(32, 32), base="MobileNet", weights=base_weights(), epochs=1)
    assert result is not None
    assert set(result["networks"]) == {"head", "top"}
    assert result["settings"]["family"] == "mobilenet"
