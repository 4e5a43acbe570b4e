"""Batches in parts: the weights, losses and metrics of the whole batch, to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from stoker.tf_internals import keras_losses
from stoker.tf_internals.types import Array, Data, History, Model, Tensor

ROWS, BATCH, PARTS = 50, 16, 3
layers = keras.layers


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(ROWS, *shape)).astype("float32")


def _classes(count: int, *shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, count, size=(ROWS, *shape)).astype("int32")


# Each makes a compiled model, and what it is trained on.
Given = tuple[Model, dict[str, Data]]


def mlp() -> Given:
    """A penalty of the weights, a limit for the gradient's norm, weight decay, the optimizer's own averages."""
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(12, activation="relu", kernel_regularizer="l2"),
            layers.Dense(3, activation="softmax"),
        ]
    )
    optimizer = keras.optimizers.AdamW(0.01, weight_decay=0.1, global_clipnorm=0.05, use_ema=True)
    metrics = ["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)]
    model.compile(
        optimizer, "sparse_categorical_crossentropy", metrics=metrics, weighted_metrics=["accuracy"]
    )
    weights = np.abs(_numbers(seed=5))
    return model, {"x": _numbers(6), "y": _classes(3), "sample_weight": weights}


def cnn() -> Given:
    """Convolutions, and a metric of one's own that is no sum over rows."""
    model = keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(1),
        ]
    )

    def widest(_: Tensor, predicted: Tensor) -> Tensor:
        return keras.ops.max(predicted)

    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, clipvalue=0.05), "mse", metrics=["mae", widest])
    return model, {"x": _numbers(8, 8, 2), "y": _numbers(1, seed=2)}


def texts() -> Given:
    """A mask, so that parts have unequal numbers of words; a table whose gradient comes as some rows."""
    words = _classes(9, 5) * (np.arange(5)[None] <= np.arange(ROWS)[:, None] % 5)
    inputs = keras.Input((5,), dtype="int32")
    hidden = layers.LSTM(4, return_sequences=True)(layers.Embedding(9, 6, mask_zero=True)(inputs))
    model = keras.Model(inputs, layers.Dense(9, activation="softmax")(hidden))
    model.compile(keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model, {"x": words, "y": _classes(9, 5, seed=3)}


def several_outputs() -> Given:
    """A loss for each output, weighted; one divides by its sample weights, one by the labels that count, one not."""
    inputs = keras.Input((6,), name="in")
    hidden = layers.Dense(8, activation="tanh")(inputs)
    model = keras.Model(
        inputs,
        {
            "a": layers.Dense(2, name="a")(hidden),
            "b": layers.Dense(4, name="b", activation="softmax")(hidden),
            "c": layers.Dense(1, name="c")(hidden),
        },
    )
    losses = {
        "a": keras.losses.MeanSquaredError(reduction="mean_with_sample_weight"),
        "b": keras.losses.SparseCategoricalCrossentropy(ignore_class=0),
        "c": keras.losses.Huber(reduction="sum"),
    }
    model.compile("adam", losses, loss_weights={"a": 1.0, "b": 0.5, "c": 0.1}, metrics={"a": ["mae"]})
    y = {"a": _numbers(2, seed=2), "b": _classes(4), "c": _numbers(1, seed=4)}
    weights = {name: np.abs(_numbers(seed=7 + i)) for i, name in enumerate(y)}
    return model, {"x": _numbers(6), "y": y, "sample_weight": weights}


def mixed_precision(initial_scale: float = 2.0**8) -> Given:
    """A scaled loss, computed in 16 bits."""
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = keras.Sequential([keras.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(1)])
    finally:
        keras.config.set_dtype_policy("float32")
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.02), initial_scale=initial_scale)
    model.compile(scaled, "mse")
    return model, {"x": _numbers(6), "y": _numbers(1, seed=2)}


class OwnPenalty(keras.layers.Layer):
    """Adds a loss that is a mean over the rows."""

    def call(self, inputs: Tensor) -> Tensor:
        self.add_loss(0.1 * keras.ops.mean(keras.ops.square(inputs)))
        return inputs


def own_pieces() -> Given:
    """A layer's own loss and a model's own `compute_loss` and `compute_metrics`."""

    class Own(keras.Sequential):
        def compute_loss(
            self, x: Any = None, y: Any = None, y_pred: Any = None, *_: Any, **__: Any
        ) -> Tensor:
            return keras.ops.mean(keras.ops.abs(y - y_pred)) + sum(self.losses)

        def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
            return {
                **super().compute_metrics(x, y, y_pred, sample_weight),
                "rows": keras.ops.shape(y_pred)[0],
            }

    model = Own([keras.Input((6,)), layers.Dense(5), OwnPenalty(), layers.Dense(1)])
    model.compile("rmsprop", loss=None)
    return model, {"x": _numbers(6), "y": _numbers(1, seed=2)}


def _train(make: Callable[[], Given], plan: dict[str, Any], **options: Any) -> tuple[Model, History]:
    keras.utils.set_random_seed(3)
    model, data = make()
    history = stoker.fit(model, **data, batch_size=BATCH, epochs=3, verbose=0, plan=plan, **options)
    return model, history


def _compare(
    whole: tuple[Model, History], parted: tuple[Model, History], *, atol: float = 1e-5, rtol: float = 1e-4
) -> None:
    (one, first), (other, second) = whole, parted
    assert second.plan.parts == PARTS
    for left, right in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=atol)
    assert int(one.optimizer.iterations) == int(other.optimizer.iterations)
    assert list(first.history) == list(second.history)
    for name in first.history:
        np.testing.assert_allclose(first.history[name], second.history[name], rtol=rtol, err_msg=name)


MODELS = (mlp, cnn, texts, several_outputs, own_pieces)


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_parts_end_where_whole_batches_end(make: Callable[[], Given]) -> None:
    _compare(_train(make, {"jit": "none"}), _train(make, {"jit": "none", "parts": PARTS}))


def test_mixed_precision_differs_by_the_rounding_of_16_bits() -> None:
    whole, parted = (_train(mixed_precision, {"jit": "none", **more}) for more in ({}, {"parts": PARTS}))
    _compare(whole, parted, atol=1e-3, rtol=1e-2)


def test_a_step_in_parts_that_overflows_is_left_out() -> None:
    model, _ = _train(lambda: mixed_precision(2.0**40), {"jit": "none", "parts": PARTS})
    assert int(model.optimizer.iterations) == 0
    # Halved once a batch, not once a part.
    assert float(model.optimizer.dynamic_scale) == 2.0 ** (40 - 12)
    keras.utils.set_random_seed(3)
    for one, other in zip(model.get_weights(), mixed_precision()[0].get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def normalized(rate: float = 0.0) -> Given:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.BatchNormalization(momentum=0.9),
            layers.Dropout(rate, seed=4),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model, {"x": _numbers(6), "y": _numbers(1, seed=2), "shuffle": False}


def test_batch_normalisation_sees_one_part_at_a_time() -> None:
    parted, history = _train(normalized, {"jit": "none", "parts": PARTS})
    assert "batch normalisation sees one part at a time" in history.plan.reasons
    whole, history = _train(normalized, {"jit": "none"})
    assert not any("normalisation sees" in reason for reason in history.plan.reasons)
    # The moving mean moves once a batch, as that of whole batches; the rest differs.
    np.testing.assert_allclose(parted.layers[0].moving_mean, whole.layers[0].moving_mean, atol=1e-5)
    assert np.abs(parted.layers[0].moving_variance - whole.layers[0].moving_variance).max() > 1e-3


def test_random_layers_draw_for_each_part_and_the_same_in_every_run() -> None:
    (first, history), (again, _) = (
        _train(lambda: normalized(0.5), {"jit": "none", "parts": PARTS}) for _ in "12"
    )
    assert "random layers draw for each part" in history.plan.reasons
    for one, other in zip(first.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_xla_compiles_a_part() -> None:
    parted = _train(several_outputs, {"jit": "loop", "parts": PARTS})
    assert parted[1].plan.jit == "step"
    assert "with parts, XLA compiles the computation of a part" in parted[1].plan.reasons
    _compare(_train(several_outputs, {"jit": "none"}), parted)


def penalised() -> Given:
    model = keras.Sequential([keras.Input((6,)), layers.Dense(4, activity_regularizer="l1"), layers.Dense(1)])
    model.compile("adam", "mse")
    return model, {"x": _numbers(6), "y": _numbers(1, seed=2)}


def test_a_penalty_of_activities_counts_once_or_is_refused() -> None:
    if keras_losses.adds_up_activities():
        with pytest.raises(ArgumentError, match="this Keras adds up the penalty of an activity_regularizer"):
            _train(penalised, {"jit": "none", "parts": PARTS})
    else:
        _compare(_train(penalised, {"jit": "none"}), _train(penalised, {"jit": "none", "parts": PARTS}))
