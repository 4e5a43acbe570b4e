"""A trainer's batches in parts: the updates of whole batches, whatever the trainer makes of them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError

X: Any = np.random.default_rng(0).normal(size=(50, 6)).astype("float32")
Y: Any = X[:, :1] * X[:, 1:2]


def step(model: Any, batch: Any, training: bool = True) -> Any:
    x, y = batch
    predicted = model(x, training=training)
    losses = {"near": tf.reduce_mean((predicted - y) ** 2), "small": tf.reduce_mean(tf.abs(predicted))}
    return losses, {"mean": tf.reduce_mean(predicted)}


def train(plan: dict[str, Any], kind: Any = stoker.Trainer, **options: Any) -> tuple[Any, Any]:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)]
    )
    trainer = kind(model, keras.optimizers.Adam(0.01), step, **options)
    data: dict[str, Any] = {"batch_size": 16, "epochs": 3, "verbose": 0, "validation_split": 0.2}
    return model, trainer.fit(X, Y, plan={"jit": "none", **plan}, **data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"clip": stoker.Clip(global_norm=0.1), "accumulate": 2, "ema": 0.9},
        {
            "losses": {"near": "auto", "small": "auto"},
            "loss_scale": stoker.LossScale(),
            "rates": {"bias": 0.1},
        },
    ],
    ids=["accumulated", "balanced"],
)
def test_parts_end_where_whole_batches_end(options: dict[str, Any]) -> None:
    (one, first), (other, second) = train({}, **options), train({"parts": 3}, **options)
    assert second.plan.parts == 3
    for left, right in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-5)
    assert int(one.optimizer.iterations) == int(other.optimizer.iterations)
    assert list(first.history) == list(second.history)
    for name in first.history:
        np.testing.assert_allclose(
            first.history[name], second.history[name], rtol=1e-4, atol=1e-6, err_msg=name
        )


class Own(stoker.Trainer):
    def minimize(self, tape: Any, loss: Any, part: str = "model") -> None:
        super().minimize(tape, loss, part)


def test_what_takes_the_batch_as_it_is_cannot_be_cut() -> None:
    for options, said in (
        ({"losses": stoker.Balance("gradients")}, "losses are balanced by the gradients of whole batches"),
        ({"kind": Own}, "a train_step or minimize of your own takes the batch as it is"),
    ):
        with pytest.raises(ArgumentError, match=f"parts=3: {said}"):
            train({"parts": 3}, **options)


def test_memory_is_checked_when_the_trainer_is_made() -> None:
    with pytest.raises(ArgumentError, match="memory='much': give \"auto\""):
        train({}, memory="much")
    assert train({}, memory="auto")[1].plan.parts == 1
