"""Half precision: asked for where every GPU gains, used in training, left behind in the export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import pytest

from stoker import recipes
from stoker.recipes.precisions import precision_for
from stoker.recipes.programs import image
from tests.recipes.data_files import shapes
from tests.recipes.weights import weights_in


@pytest.mark.parametrize(
    ("gpus", "wanted"),
    [
        ([], "float32"),
        ([{"device_name": "a GPU of another kind"}], "float32"),
        ([{"compute_capability": (6, 1)}], "float32"),
        ([{"compute_capability": (7, 0)}], "mixed_float16"),
        ([{"compute_capability": (9, 0)}, {"compute_capability": (6, 1)}], "float32"),
    ],
)
def test_it_is_asked_for_where_every_gpu_gains(gpus: list[Any], wanted: str) -> None:
    assert precision_for(gpus) == wanted


def _settings(**more: Any) -> image.Settings:
    plain = image.Settings(
        data="photos", run="runs/half", size=(12, 12), color_mode="grayscale", filters=(8, 16)
    )
    return replace(plain, batch_size=8, epochs=6, **more)


def test_a_network_computes_in_it_and_answers_in_float32() -> None:
    with recipes.precision("mixed_float16"):
        model = image.network("convolutions", SimpleNamespace(class_names=["a", "b"]), _settings())
    convolution, *_ = (layer for layer in model.layers if isinstance(layer, keras.layers.Conv2D))
    assert convolution.compute_dtype == "float16"
    assert convolution.variable_dtype == "float32"
    assert model.output.dtype == "float32"
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.slow
def test_what_is_exported_is_float32_with_the_trained_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    shapes(tmp_path / "photos")
    result = image.main(_settings(precision="mixed_float16"))
    assert result["contenders"][0]["scores"]["accuracy"]["value"] > 0.8
    exported = keras.models.load_model("runs/half/bundle/model.keras")
    assert {layer.compute_dtype for layer in exported.layers} <= {"float32", "uint8"}
    # The same again is trained from the same weights in the same order, in another precision.
    image.main(_settings(run="runs/whole"))
    assert weights_in(Path("runs/half")) != weights_in(Path("runs/whole"))
