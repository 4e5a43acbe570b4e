"""The progress of a recipe's training: its line on the terminal, its curves, its time limit."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import keras

from stoker import clock
from stoker.logs import PROGRESS, REPLACED
from stoker.tf_internals.types import Model, Tensor
from stoker.units import quantity

if TYPE_CHECKING:
    from stoker.recipes.rows import Rows

# The seconds between two updates of the line on a terminal.
_EVERY_S = 0.5


def _now_s() -> float:
    return clock.now_ns() / 1e9


class TimeIsUp(KeyboardInterrupt):
    """The training has used up its time. It ends as it does on Ctrl-C, and can be resumed."""


@dataclass(frozen=True)
class Trained:
    """A network after training.

    Attributes:
        name: the name of the kind of network.
        model: the model, with the best weights.
        loss: the lowest validation loss.
        curves: the values that Keras logged, by epoch.
        stopped: what ended the training early, "interrupted" or "time"; otherwise None.
        learn_again: trains such a network on other rows, for as many epochs as this one needed.
    """

    name: str
    model: Model
    loss: float
    curves: list[dict[str, float]]
    stopped: str | None = None
    learn_again: Callable[[Rows], Model] | None = None


class ProgressState(TypedDict):
    """The part of `Progress` that a checkpoint keeps."""

    curves: list[dict[str, float]]
    used_s: float
    best: float


class Progress(keras.callbacks.Callback):
    """Shows the epochs of a training in one line, keeps its curves, and ends it when its time is up.

    Args:
        name: the name of the network.
        time_s: how long training may take, not counting the time before it was resumed; None for no limit.
    """

    # Called once per compiled call, not once per step.
    every_batch = False

    def __init__(self, name: str, time_s: float | None = None) -> None:
        super().__init__()
        self.name, self.time_s = name, time_s
        self.curves: list[dict[str, float]] = []
        self.used_s = 0.0
        self.best = math.inf
        self.stopped: str | None = None
        self._since = self._shown = _now_s()

    def get_state(self) -> ProgressState:
        """Return what a checkpoint keeps."""
        return {"curves": self.curves, "used_s": self._used_s(), "best": self.best}

    def set_state(self, state: ProgressState) -> None:
        """Resume from a checkpoint."""
        self.curves, self.used_s, self.best = list(state["curves"]), state["used_s"], state["best"]
        self._since = _now_s()

    def _used_s(self) -> float:
        return self.used_s + _now_s() - self._since

    def on_train_batch_end(self, batch: int, logs: dict[str, Tensor] | None = None) -> None:
        self._check_time()

    def on_test_batch_end(self, batch: int, logs: dict[str, Tensor] | None = None) -> None:
        """Check the time in validation, too, which may take long."""
        self._check_time()

    def on_predict_batch_end(self, batch: int, logs: dict[str, Tensor] | None = None) -> None:
        """Count the predictions of a frozen part before training as training."""
        self._check_time()

    def _check_time(self) -> None:
        if self.time_s is not None and _now_s() - self._since > self.time_s:
            raise TimeIsUp

    def on_epoch_end(self, epoch: int, logs: dict[str, Tensor] | None = None) -> None:
        self.curves.append({name: float(value) for name, value in (logs or {}).items()})
        self.best = min(self.best, self.curves[-1].get("val_loss", math.inf))
        if sys.stdout.isatty() and _now_s() - self._shown > _EVERY_S:
            self._shown = _now_s()
            PROGRESS.info("  %s", self._line(epoch), extra=REPLACED)

    def _line(self, epoch: int) -> str:
        epochs = int(self.params.get("epochs") or 0)
        left = self._used_s() / (epoch + 1) * (epochs - epoch - 1)
        if self.time_s is not None:
            left = min(left, self.time_s - (_now_s() - self._since))
        return (
            f"{self.name}: epoch {epoch + 1}, validation loss {self.curves[-1].get('val_loss', math.nan):.4g}, "
            f"best {self.best:.4g}, at most {_duration(left)} left"
        )

    def interrupted(self, error: KeyboardInterrupt) -> None:
        """Note that the training ended early."""
        self.stopped = "time" if isinstance(error, TimeIsUp) else "interrupted"

    def trained(self, model: Model) -> Trained:
        """Return the network after training, and log a line about it."""
        why = {"time": ", its time is up", "interrupted": ", interrupted", None: ""}[self.stopped]
        done = "no epoch finished yet"
        if self.curves:
            done = f"{quantity(len(self.curves), 'epoch')}, validation loss {self.best:.4g}"
        say(f"  {self.name}: {done}, {_duration(self._used_s())}{why}")
        return Trained(self.name, model, self.best, self.curves, self.stopped)


def say(line: str) -> None:
    """Log a line for the user."""
    PROGRESS.info(line)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
