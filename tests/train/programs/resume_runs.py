"""Trainings that a test kills and starts again: each is one call of `stoker.fit` and returns what it ended with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import stoker
from stoker import software_gpu
from stoker.train.variables import named_variables

ROWS, WIDTH = 1536, 16
X = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
Y = (X @ np.random.default_rng(1).normal(size=(WIDTH, 1)) > 0).astype(np.float32)


def network(optimizer: Any) -> Any:
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((WIDTH,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(1, activation="sigmoid", dtype="float32"),
        ]
    )
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])
    return model


def saving(directory: Path) -> stoker.Checkpoint:
    return stoker.Checkpoint(directory / "checkpoints", every=7)


def ending(model: Any, history: Any, *logs: Path) -> dict[str, Any]:
    """Everything that must not differ, by name."""
    state = {name: variable.numpy().tobytes() for name, variable in named_variables(model).items()}
    end = {name: hashlib.sha256(value).hexdigest()[:16] for name, value in state.items()}
    end["history"] = json.dumps(history.history)
    end["epochs"] = json.dumps(history.epoch)
    return end | {path.name: path.read_text() for path in logs}


def resident(directory: Path) -> dict[str, Any]:
    """Rows in memory, shuffled; a schedule; validation; callbacks that remember."""
    schedule = keras.optimizers.schedules.ExponentialDecay(0.01, 20, 0.9)
    model = network(keras.optimizers.Adam(schedule))
    log = directory / "log.csv"
    callbacks = [
        keras.callbacks.CSVLogger(log),
        keras.callbacks.EarlyStopping("val_loss", patience=2, min_delta=0.01, restore_best_weights=True),
    ]
    history = stoker.fit(
        model,
        X,
        Y,
        batch_size=32,
        epochs=12,
        verbose=0,
        validation_split=0.25,
        callbacks=callbacks,
        plan="8",
        checkpoint=saving(directory),
    )
    return ending(model, history, log)


def streamed(directory: Path) -> dict[str, Any]:
    """A tf.data pipeline with a seeded shuffle; mixed_float16 with a loss scale that moves; averages of the
    weights; rates that callbacks multiply at the start of an epoch."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    inner = keras.optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=10)
    model = network(keras.optimizers.LossScaleOptimizer(inner, dynamic_growth_steps=9))
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(500, seed=3).batch(48).prefetch(2)
    callbacks = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.8),
        keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=0.05),
    ]
    history = stoker.fit(
        model,
        dataset,
        epochs=5,
        verbose=0,
        shuffle=False,
        callbacks=callbacks,
        plan="4",
        checkpoint=saving(directory),
    )
    return ending(model, history)


class Rows(keras.utils.PyDataset):
    """Batches made in Python, in an order that it changes itself after every epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng(11)
        self.order = np.arange(ROWS)

    def __len__(self) -> int:
        return ROWS // 64

    def __getitem__(self, index: int) -> Any:
        chosen = self.order[index * 64 : (index + 1) * 64]
        return X[chosen], Y[chosen]

    def on_epoch_end(self) -> None:
        self.random.shuffle(self.order)


def python_data(directory: Path) -> dict[str, Any]:
    """A PyDataset that shuffles itself."""
    model = network(keras.optimizers.RMSprop(0.003))
    history = stoker.fit(
        model, Rows(), epochs=5, verbose=0, shuffle=False, plan="4", checkpoint=saving(directory)
    )
    return ending(model, history)


def in_parts(directory: Path) -> dict[str, Any]:
    """Batches in as many parts as fit into the memory asked for, found by measuring on the software GPU.

    An epoch has 45 steps, so that no checkpoint but the last falls on the end of an epoch.
    """
    software_gpu.enable(memory="64MiB")
    keras.utils.set_random_seed(7)
    layers = keras.layers
    hidden = [layers.Dense(32, activation="tanh") for _ in range(6)]
    model = keras.Sequential(
        [
            keras.Input((WIDTH,)),
            layers.Reshape((WIDTH, 1)),
            *hidden,
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.003), "mse", metrics=["mae"], jit_compile=False)
    history = stoker.fit(
        model,
        np.tile(X, (4, 1))[:5700],
        np.tile(Y, (4, 1))[:5700],
        batch_size=128,
        epochs=2,
        verbose=0,
        plan={"jit": "none", "steps_per_call": 4},
        memory="1470KiB",
        checkpoint=saving(directory),
    )
    return ending(model, history) | {"parts": history.plan.parts}


RUNS: dict[str, Callable[[Path], dict[str, Any]]] = {
    run.__name__: run for run in (resident, streamed, python_data, in_parts)
}
