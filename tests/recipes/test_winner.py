"""The exported model of texts and images: a rival, or a mix with the network, from raw rows, over a bundle."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError, StokerError
from stoker.recipes.baselines import LINEAR, TFIDF
from stoker.recipes.pixels import image_rivals
from stoker.recipes.programs import image, text
from stoker.recipes.rows import rows_of
from stoker.recipes.tfidf import text_rivals
from stoker.recipes.winner import NETWORK, WinnerChoice
from tests.recipes.data_files import reviews, shapes

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow
def test_texts_are_answered_by_tfidf_or_a_mix_as_by_their_parts(tmp_path: Path) -> None:
    reviews(tmp_path / "reviews")
    settings = text.Settings(data="reviews", run="runs/x", width=4)
    train, texts, validation, test = text.read(settings)
    seen, held_out, unseen = rows_of(texts), rows_of(validation), rows_of(test)
    keras.utils.set_random_seed(0)
    network = text.network("mean", train, settings)
    rivals = text_rivals(seen, held_out, classes=2)
    choice = WinnerChoice(
        network,
        rivals,
        train,
        classes=2,
        balanced=False,
        ids=lambda given: train.vectorization(given)[:, : settings.max_length],
        raw=texts,
    )
    answers = choice.answers(unseen)
    # A network that has learned nothing loses.
    won = choice.choose(held_out, None)
    assert won.name == TFIDF
    np.testing.assert_allclose(won.predict(unseen.inputs), answers[TFIDF], rtol=1e-5, atol=1e-6)
    mixed = choice._make({NETWORK: 0.5, TFIDF: 0.5})
    assert mixed.name == "ensemble"
    bundle = stoker.export(mixed.model, "mixed", features=mixed.features, scores_once=True)
    assert [one.name for one in bundle.signature.outputs] == ["label", "scores"]
    assert bundle.description["keras"]["fault"] is None
    served = stoker.Predictor("mixed").predict({"text": list(unseen.inputs)})
    wanted = (answers[NETWORK] + answers[TFIDF]) / 2
    np.testing.assert_allclose(served["scores"], wanted, rtol=1e-5, atol=1e-6)
    assert choice.choose(held_out, NETWORK).model is network
    # Without time for any network there is still a model.
    assert (
        WinnerChoice(None, rivals, train, classes=2, balanced=False, raw=texts).choose(held_out, None).name
        == TFIDF
    )


@pytest.mark.slow
def test_images_are_answered_by_a_linear_model_of_their_pixels(tmp_path: Path) -> None:
    shapes(tmp_path / "photos")
    settings = image.Settings(
        data="photos", run="runs/x", size=(12, 12), color_mode="grayscale", augment=(), batch_size=8
    )
    train, validation, test = image.read(settings)
    seen, held_out, unseen = (rows_of(one) for one in (train, validation, test))
    rivals = image_rivals(seen, held_out, classes=len(train.class_names))
    choice = WinnerChoice(None, rivals, train, classes=len(train.class_names), balanced=False)
    won = choice.choose(held_out, None)
    assert won.name == LINEAR
    wanted = choice.answers(unseen)[LINEAR]
    np.testing.assert_allclose(won.predict(unseen.inputs), wanted, rtol=1e-5, atol=1e-6)
    stoker.export(won.model, "linear", features=won.features, scores_once=True)
    served = stoker.Predictor("linear").predict({"image": unseen.inputs})
    np.testing.assert_allclose(served["scores"], wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match="no such model that can be exported"):
        choice.choose(held_out, "support vectors")
    with pytest.raises(StokerError, match="nothing to keep yet"):
        WinnerChoice(None, [], train, classes=2, balanced=False).choose(held_out, None)
