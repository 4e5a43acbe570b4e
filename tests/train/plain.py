"""Training written out with a GradientTape, against which the trainer's numbers are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

ROWS, BATCH = 24, 8
# Rows whose last batch is short.
UNEVEN = 26


def data(rows: int = ROWS) -> tuple[Any, Any]:
    random = np.random.default_rng(7)
    x = random.normal(size=(rows, 3)).astype("float32")
    return x, (3 * x[:, :1] - x[:, 1:2] * x[:, 2:]).astype("float32")


def model(**first_layer: Any) -> keras.Model:
    """Two layers, "encoder" and "head", with the same weights every time."""
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(4, activation="tanh", name="encoder", **first_layer),
            keras.layers.Dense(1, name="head"),
        ]
    )


def squared(model: Any, batch: Any, training: bool = True) -> Any:
    """The step of most tests: the mean squared error."""
    x, y = batch
    return tf.reduce_mean(tf.square(y - model(x, training=training)))


def batches(x: Any, y: Any, size: int = BATCH, epochs: int = 2) -> list[tuple[Any, Any]]:
    starts = range(0, len(x), size)
    return [
        (tf.constant(x[i : i + size]), tf.constant(y[i : i + size])) for _ in range(epochs) for i in starts
    ]


def gradients(net: Any, batch: Any, loss: Callable[..., Any] = squared) -> list[Any]:
    with tf.GradientTape() as tape:
        value = loss(net, batch)
    return list(tape.gradient(value, [one.value for one in net.trainable_variables]))


def train(
    net: Any,
    optimizer: Any,
    change: Callable[[list[Any]], Sequence[Any]] = lambda slopes: slopes,
    loss: Callable[..., Any] = squared,
    size: int = BATCH,
    rows: int = ROWS,
) -> list[Any]:
    """Two epochs of the plain loop; the weights."""
    for batch in batches(*data(rows), size=size):
        optimizer.apply(change(gradients(net, batch, loss)), net.trainable_variables)
    return weights(net)


def weights(net: Any) -> list[Any]:
    return [one.numpy() for one in net.trainable_variables]


def assert_same(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 2e-5) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
