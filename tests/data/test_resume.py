"""Training from a reader goes on after a crash with the bits of a run that was left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from tests.data.frames import mixed


class _Crash(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at, self.seen = at, 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise KeyboardInterrupt


def _train(path: Path, directory: Path, callbacks: Any = None) -> Any:
    keras.utils.set_random_seed(0)
    train, held_out = stoker.data.csv(
        path,
        label="count",
        batch_size=50,
        shuffle=True,
        seed=6,
        validation_split=0.2,
        columns=["weight", "colour", "sold"],
    )
    inputs = train.features.inputs()
    model = keras.Model(inputs, keras.layers.Dense(1)(train.features.encode(inputs)))
    model.compile("adam", "mse")
    checkpoint = stoker.Checkpoint(directory, every=3)
    stoker.fit(
        model,
        train,
        validation_data=held_out,
        epochs=3,
        verbose=0,
        callbacks=callbacks,
        checkpoint=checkpoint,
    )
    return [weight.copy() for weight in model.get_weights()]


@pytest.mark.parametrize("at", [5, 11, 20])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path, at: int) -> None:
    mixed(500).to_csv(tmp_path / "t.csv", index=False)
    expected = _train(tmp_path / "t.csv", tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        _train(tmp_path / "t.csv", tmp_path / "broken", [_Crash(at)])
    found = _train(tmp_path / "t.csv", tmp_path / "broken")
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)
