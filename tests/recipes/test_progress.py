"""What a training in a recipe remembers, and when its time is up; durations as people write them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from stoker.recipes.arguments import seconds_of
from stoker.recipes.progress import Progress, TimeIsUp


def _train(progress: Progress, epochs: int = 3) -> Any:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x: Any = np.ones((8, 2), np.float32)
    stoker.fit(
        model, x, x[:, 0], validation_data=(x, x[:, 0]), epochs=epochs, callbacks=[progress], verbose=0
    )
    return model


def test_the_curves_and_the_best_loss_are_kept_and_come_back() -> None:
    progress = Progress("plain")
    trained = progress.trained(_train(progress))
    assert len(trained.curves) == 3
    assert trained.loss == min(one["val_loss"] for one in trained.curves)
    assert trained.stopped is None
    again = Progress("plain")
    again.set_state(progress.get_state())
    assert again.curves == progress.curves
    assert again.best == progress.best


def test_training_ends_when_its_time_is_up() -> None:
    progress = Progress("plain", time_s=1e-9)
    with pytest.raises(TimeIsUp) as caught:
        _train(progress)
    progress.interrupted(caught.value)
    assert progress.stopped == "time"
    progress.interrupted(KeyboardInterrupt())
    assert progress.stopped == "interrupted"


@pytest.mark.parametrize(
    ("text", "wanted"), [("90", 90), (5, 5), ("10m", 600), ("10 min", 600), ("1.5h", 5400)]
)
def test_durations(text: Any, wanted: float) -> None:
    assert seconds_of(text) == wanted


@pytest.mark.parametrize("text", ["soon", "", "0s", "-5", "3 d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ArgumentError, match="give a duration"):
        seconds_of(text)
