"""Every Keras layer that behaves differently in training is switched off in an export.

The layers are found by listing `keras.layers`, not by memory: a new one fails the first test until it has a row here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import stoker


@keras.saving.register_keras_serializable("tests")
def _doubled_in_training(x: Any, training: bool | None = None) -> Any:
    return x + keras.random.normal(keras.ops.shape(x)) if training else x


# Layers around something that only another framework, or no model of tensors, has.
NOT_HERE = {
    "FlaxLayer": "wraps a Flax module",
    "JaxLayer": "wraps a JAX function",
    "TorchModuleWrapper": "wraps a Torch module",
    "MaxNumBoundingBoxes": "changes bounding boxes, which no answer has",
    "TFSMLayer": "wraps a SavedModel, whose function has no training argument to pass on",
}
# What a layer needs to be made, where its name alone is not enough.
MAKE: dict[str, Callable[[], Any]] = {
    "AlphaDropout": lambda: layers.AlphaDropout(0.5),
    "Bidirectional": lambda: layers.Bidirectional(layers.LSTM(3, dropout=0.5)),
    "CenterCrop": lambda: layers.CenterCrop(4, 4),
    "ConvLSTM1D": lambda: layers.ConvLSTM1D(2, 3, dropout=0.5),
    "ConvLSTM2D": lambda: layers.ConvLSTM2D(2, 3, dropout=0.5),
    "ConvLSTM3D": lambda: layers.ConvLSTM3D(2, 3, dropout=0.5),
    "Dense": lambda: layers.Dense(3),
    "Dropout": lambda: layers.Dropout(0.5),
    "EinsumDense": lambda: layers.EinsumDense("ab,bc->ac", output_shape=3),
    "GRU": lambda: layers.GRU(3, dropout=0.5),
    "GaussianDropout": lambda: layers.GaussianDropout(0.5),
    "GaussianNoise": lambda: layers.GaussianNoise(1.0),
    "LSTM": lambda: layers.LSTM(3, dropout=0.5),
    "Lambda": lambda: layers.Lambda(_doubled_in_training),
    "Pipeline": lambda: layers.Pipeline([layers.RandomFlip(), layers.RandomBrightness(0.5)]),
    "RNN": lambda: layers.RNN(layers.LSTMCell(3, dropout=0.5)),
    "RandomBrightness": lambda: layers.RandomBrightness(0.5),
    "RandomColorDegeneration": lambda: layers.RandomColorDegeneration(0.5),
    "RandomColorJitter": lambda: layers.RandomColorJitter(brightness_factor=0.5),
    "RandomContrast": lambda: layers.RandomContrast(0.5),
    "RandomCrop": lambda: layers.RandomCrop(4, 4),
    "RandomErasing": lambda: layers.RandomErasing(),
    "RandomGrayscale": lambda: layers.RandomGrayscale(0.5),
    "RandomHue": lambda: layers.RandomHue(0.5),
    "RandomInvert": lambda: layers.RandomInvert(0.5),
    "RandomPosterization": lambda: layers.RandomPosterization(4),
    "RandomRotation": lambda: layers.RandomRotation(0.5),
    "RandomSaturation": lambda: layers.RandomSaturation(0.5),
    "RandomSharpness": lambda: layers.RandomSharpness(0.5),
    "RandomShear": lambda: layers.RandomShear(0.5, 0.5),
    "RandomTranslation": lambda: layers.RandomTranslation(0.5, 0.5),
    "RandomZoom": lambda: layers.RandomZoom(0.5),
    "Resizing": lambda: layers.Resizing(4, 4),
    "SimpleRNN": lambda: layers.SimpleRNN(3, dropout=0.5),
    "SpatialDropout1D": lambda: layers.SpatialDropout1D(0.5),
    "SpatialDropout2D": lambda: layers.SpatialDropout2D(0.5),
    "SpatialDropout3D": lambda: layers.SpatialDropout3D(0.5),
    "SpectralNormalization": lambda: layers.SpectralNormalization(layers.Dense(3)),
    "StackedRNNCells": lambda: layers.RNN(layers.StackedRNNCells([layers.GRUCell(3, dropout=0.5)])),
    "GRUCell": lambda: layers.RNN(layers.GRUCell(3, dropout=0.5)),
    "LSTMCell": lambda: layers.RNN(layers.LSTMCell(3, dropout=0.5)),
    "SimpleRNNCell": lambda: layers.RNN(layers.SimpleRNNCell(3, dropout=0.5)),
    "TimeDistributed": lambda: layers.TimeDistributed(layers.Dropout(0.5)),
}
# The shape of a row, where it is no image.
SHAPES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("AlphaDropout", "BatchNormalization", "Dense", "Dropout", "EinsumDense", "GaussianDropout"), (6,)
    ),
    **dict.fromkeys(("GaussianNoise", "Lambda", "SpectralNormalization"), (6,)),
    **dict.fromkeys(
        ("Bidirectional", "GRU", "LSTM", "RNN", "SimpleRNN", "SpatialDropout1D", "TimeDistributed"), (5, 4)
    ),
    **dict.fromkeys(("StackedRNNCells", "GRUCell", "LSTMCell", "SimpleRNNCell"), (5, 4)),
    "ConvLSTM1D": (3, 6, 2),
    "ConvLSTM2D": (3, 6, 6, 2),
    "ConvLSTM3D": (3, 4, 4, 4, 1),
    "SpatialDropout3D": (3, 3, 3, 2),
}
ATTENTION: dict[str, Callable[[Any], Any]] = {
    "AdditiveAttention": lambda x: layers.AdditiveAttention(dropout=0.5)([x, x]),
    "Attention": lambda x: layers.Attention(dropout=0.5)([x, x]),
    "GroupQueryAttention": lambda x: layers.GroupQueryAttention(4, 2, 1, dropout=0.5)(x, x),
    "MultiHeadAttention": lambda x: layers.MultiHeadAttention(2, 4, dropout=0.5)(x, x),
}
IMAGE = (8, 8, 3)


def differing_in_training() -> dict[str, type[Any]]:
    """The layers whose call takes `training`, each class once."""
    found: dict[str, type[Any]] = {}
    for name, one in sorted(vars(layers).items()):
        if inspect.isclass(one) and issubclass(one, layers.Layer) and one.__name__ == name:
            layer: Any = one
            takes = inspect.signature(layer.call).parameters
            if "training" in takes and one not in found.values():
                found[name] = one
    return found


LISTED = sorted(set(differing_in_training()) - set(NOT_HERE))


def branch(name: str, entry: Any) -> Any:
    if name in ATTENTION:
        output = ATTENTION[name](entry)
    else:
        output = MAKE.get(name, lambda: differing_in_training()[name]())()(entry)
    # Some layers give back the very tensor they got, which cannot be an output of its own.
    return keras.ops.multiply(output, 1.0)


def shape_of(name: str) -> tuple[int, ...]:
    return (5, 4) if name in ATTENTION else SHAPES.get(name, IMAGE)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("layers") / "bundle"


@pytest.fixture(scope="module")
def everything(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    """One model with a branch for each layer, what its bundle does, and rows that are not the recorded ones."""
    shapes = {shape_of(name) for name in LISTED}
    entries = {shape: keras.Input(shape, name="rows_" + "x".join(map(str, shape))) for shape in shapes}
    outputs = {name: branch(name, entries[shape_of(name)]) for name in LISTED}
    model = keras.Model({one.name: one for one in entries.values()}, outputs)
    with pytest.warns(stoker.BundleWarning, match="does not load by itself"):
        # The function in the Lambda layer is known to this process only.
        stoker.export(model, path)
    random = np.random.default_rng(5)
    rows = {one.name: random.uniform(0, 255, (5, *shape)).astype("float32") for shape, one in entries.items()}
    return model, tf.saved_model.load(str(path / "saved_model")), rows


def test_all_layers_that_differ_are_here() -> None:
    assert len(LISTED) > 55
    assert set(NOT_HERE) <= set(differing_in_training()) | {"TorchModuleWrapper", "FlaxLayer", "JaxLayer"}


@pytest.fixture(scope="module")
def answers(everything: tuple[Any, Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """What predict says, and what the bundle says twice."""
    model, saved, rows = everything
    function = saved.signatures["serving_default"]
    given = {name: tf.constant(array) for name, array in rows.items()}
    return [model.predict(rows, verbose=0), function(**given), function(**given)]


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTED)
def test_it_is_switched_off(name: str, answers: list[dict[str, Any]]) -> None:
    predicted, first, second = (np.asarray(one[name]) for one in answers)
    assert np.array_equal(first, second)
    np.testing.assert_allclose(first, predicted, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(predicted).max()))


def test_weights_are_stored_once(everything: tuple[Any, Any, dict[str, Any]], path: Path) -> None:
    model, saved, _ = everything
    stored = tf.train.list_variables(str(path / "saved_model" / "variables" / "variables"))
    entries = [name for name, _ in stored if "VARIABLE_VALUE" in name]
    assert len(entries) == len(saved.weights) >= len(model.weights)
