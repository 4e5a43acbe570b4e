"""Training runs whose checkpoints are kept beside this file, as version 0.1.0 of Stoker wrote them.

A run may be interrupted after a number of steps; the same run again goes on from its checkpoint. Everything here is
public API, so that any version of Stoker runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import stoker

ROWS, WIDTH, BATCH, EPOCHS = 44, 4, 8, 4


class Interrupted(Exception):
    """The run was stopped on purpose."""


class _Interrupt(keras.callbacks.Callback):
    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if self.left < 0:
            raise Interrupted

    def get_state(self) -> None:
        """Nothing that a resumed run should have back."""

    def set_state(self, state: Any) -> None:
        """Nothing to take back."""


def data() -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    return random.normal(size=(ROWS, WIDTH)).astype("float32"), random.integers(0, 3, ROWS)


def _model() -> Any:
    keras.utils.set_random_seed(11)
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((WIDTH,)),
            layers.Dense(6, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3, seed=3),
            layers.Dense(3, activation="softmax"),
        ]
    )


def _options(directory: Path, interrupt: int | None, every: int) -> dict[str, Any]:
    return {
        "epochs": EPOCHS,
        "verbose": 0,
        # One step a call in both, so that an interruption comes where it is meant to.
        "callbacks": [_Interrupt(10**9 if interrupt is None else interrupt)],
        "checkpoint": stoker.Checkpoint(directory, every=every, keep=1),
    }


def resident(directory: Path, interrupt: int | None) -> Any:
    """Arrays, shuffled, with a validation; interrupted in the third epoch."""
    model = _model()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = data()
    stoker.fit(model, x, y, BATCH, validation_split=0.25, **_options(directory, interrupt, 4))
    return model


def stream(directory: Path, interrupt: int | None) -> Any:
    """A pipeline of tf.data with a seeded shuffle."""
    model = _model()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    batches = tf.data.Dataset.from_tensor_slices(data()).shuffle(ROWS, seed=7).batch(BATCH)
    stoker.fit(model, batches, **_options(directory, interrupt, 5))
    return model


def trainer(directory: Path, interrupt: int | None) -> Any:
    """`stoker.Trainer` with an average of the weights, clipping, a loss scale and accumulation."""
    model = _model()

    def step(model: Any, batch: Any, training: bool = True) -> Any:
        x, y = batch
        losses = keras.losses.sparse_categorical_crossentropy(y, model(x, training=training))
        return keras.ops.mean(losses)

    made = stoker.Trainer(
        model,
        keras.optimizers.Adam(0.01),
        step,
        clip=stoker.Clip(global_norm=0.5),
        ema=0.9,
        loss_scale=stoker.LossScale(),
        accumulate=2,
    )
    x, y = data()
    made.fit(x, y, BATCH, **_options(directory, interrupt, 5))
    with made.averaged_weights():
        model.averaged = [np.array(weight) for weight in model.get_weights()]
    return model


RUNS: dict[str, tuple[Callable[[Path, int | None], Any], int]] = {
    "resident": (resident, 13),
    "stream": (stream, 17),
    "trainer": (trainer, 17),
}
"""The runs, and after how many steps each is interrupted."""


def end_of(model: Any) -> list[Any]:
    """What a run ends with, as arrays."""
    return [np.array(weight) for weight in model.get_weights()] + list(getattr(model, "averaged", []))
