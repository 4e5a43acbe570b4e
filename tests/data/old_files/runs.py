"""Runs over a reader whose checkpoints are kept beside this file.

Everything here is public API, so that any version of Stoker runs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

import stoker

ROWS, BATCH = 60, 6
# Early in an epoch, and late; what comes next was drawn ahead, to the end.
EARLY, LATE = 2, 8
PLACES = [(shuffle, taken) for shuffle in (False, True) for taken in (EARLY, LATE)]


class Interrupted(Exception):
    """The run was stopped on purpose."""


class _Interrupt(keras.callbacks.Callback):
    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if self.left == 0:
            raise Interrupted

    def get_state(self) -> None:
        """Nothing that a resumed run should have back."""

    def set_state(self, state: Any) -> None:
        """Nothing to take back."""


def name(shuffle: bool, taken: int) -> str:
    return f"{'shuffled' if shuffle else 'in-order'}-{taken}"


def rows(shuffle: bool) -> Any:
    """The rows 0, 1, 2, ... in batches."""
    return stoker.data.arrays(np.arange(ROWS), batch_size=BATCH, shuffle=shuffle, seed=1)


def many_rows() -> Any:
    """So many rows that a pass is not drawn ahead to its end."""
    return stoker.data.arrays(np.arange(300), batch_size=10, shuffle=True, seed=1)


def train(directory: Path, shuffle: bool, taken: int, interrupted: bool = False) -> Any:
    """Two epochs, saved after every `taken` steps; or interrupted when it was saved once."""
    keras.utils.set_random_seed(3)
    x = np.random.default_rng(0).normal(size=(ROWS, 3)).astype("float32")
    data = stoker.data.arrays(x, x.sum(1), batch_size=BATCH, shuffle=shuffle, seed=1)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    stoker.fit(
        model,
        data,
        epochs=2,
        verbose=0,
        callbacks=[_Interrupt(taken + 1 if interrupted else 10**9)],
        checkpoint=stoker.Checkpoint(directory, every=taken, keep=1),
    )
    return model.get_weights()
