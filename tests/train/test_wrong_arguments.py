"""What makes no sense is refused in one line that says what to give, before anything is trained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError

X: Any = np.ones((40, 3), "float32")
Y: Any = np.ones((40, 1), "float32")


def compiled() -> Any:
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"x": None, "y": None}, "x is missing: give arrays"),
        ({"x": X[:0], "y": Y[:0]}, "x has no rows"),
        ({"validation_data": (X[:0], Y[:0])}, "validation_data has no rows"),
        ({"epochs": 2.5}, "epochs=2.5 must be a whole number"),
        ({"batch_size": -3}, "batch_size=-3 must be at least 0"),
        ({"batch_size": 8.0}, "batch_size=8.0 must be a whole number"),
        ({"steps_per_epoch": -1}, "steps_per_epoch=-1 must be at least 0"),
        ({"validation_split": 1.5}, "validation_split=1.5 must lie between 0 and 1"),
        ({"class_weight": [1, 2]}, "class_weight must be a dict"),
        ({"callbacks": [3]}, "callbacks: give objects of keras.callbacks.Callback, not 3"),
        ({"callbacks": [keras.callbacks.TerminateOnNaN]}, "callbacks: TerminateOnNaN is a class"),
    ],
)
def test_an_argument_that_makes_no_sense(arguments: dict[str, Any], said: str) -> None:
    model = compiled()
    with pytest.raises(ArgumentError, match=said) as caught:
        stoker.fit(model, **{"x": X, "y": Y, "verbose": 0, **arguments})
    assert "\n" not in str(caught.value)
    assert int(model.optimizer.iterations) == 0


def test_numbers_of_numpy_are_numbers() -> None:
    history = stoker.fit(compiled(), X, Y, np.int64(8), np.int32(2), verbose=0)
    assert history.epoch == [0, 1]


class Broken(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        raise KeyError("of the program's own")


def test_an_error_of_the_program_shows_the_lines_of_the_program() -> None:
    with pytest.raises(KeyError) as caught:
        stoker.fit(compiled(), X, Y, verbose=0, callbacks=[Broken()])
    shown = [entry.name for entry in caught.traceback]
    # Python 3.10 keeps the line that raised it on.
    kept = ["run"] if sys.version_info < (3, 11) else []
    assert shown == ["test_an_error_of_the_program_shows_the_lines_of_the_program", *kept, "on_epoch_end"]
    keras.config.disable_traceback_filtering()
    try:
        with pytest.raises(KeyError) as caught:
            stoker.fit(compiled(), X, Y, verbose=0, callbacks=[Broken()])
    finally:
        keras.config.enable_traceback_filtering()
    assert "_train_on" in [entry.name for entry in caught.traceback]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"optimizer": "adam"}, "optimizer is 'adam', a str: give keras.optimizers.Adam"),
        ({"clip": 1.0}, r"clip=1.0: give stoker.Clip\(global_norm=1.0\)"),
        ({"ema": 2}, r"EMA\(decay=2\): it must lie between 0 and 1"),
        ({"on_spike": True}, r"on_spike=True: give stoker.Spike\(\)"),
        ({"rates": 0.1}, "rates=0.1: give a dict by name pattern"),
    ],
)
def test_an_option_of_a_trainer_that_makes_no_sense(options: dict[str, Any], said: str) -> None:
    made: dict[str, Any] = {"optimizer": keras.optimizers.Adam(), "step": lambda model, batch: 0.0, **options}
    with pytest.raises(ArgumentError, match=said):
        stoker.Trainer(keras.Sequential([keras.layers.Dense(1)]), **made)


def test_a_run_that_goes_on_says_so(tmp_path: Path, capfd: Any) -> None:
    for epochs, said in ((1, ""), (3, "continues after 1 of 3 epochs"), (3, "nothing is left to train")):
        stoker.fit(compiled(), X, Y, epochs=epochs, verbose=2, checkpoint=tmp_path)
        lines = capfd.readouterr().out.splitlines()
        assert [line for line in lines if str(tmp_path) in line and said in line] or not said
        assert bool(said) == any(str(tmp_path) in line for line in lines)
