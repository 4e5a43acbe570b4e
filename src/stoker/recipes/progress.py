"""What a training in a recipe shows and remembers, and when its time is up."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Any

import keras

from stoker.logs import PROGRESS, REPLACED
from stoker.units import counted

# Between two lines on a terminal, which replace each other.
_EVERY_S = 0.5


class TimeIsUp(KeyboardInterrupt):
    """The time a training was given is over: it ends as it would by Ctrl-C, and can go on later."""


@dataclass(frozen=True)
class Trained:
    """A network that was trained.

    Attributes:
        name: of the kind of network.
        model: with the best weights.
        loss: the least loss on the validation data.
        curves: of each epoch, what Keras logged.
        stopped: None, or what ended the training early: "interrupted" or "time".
    """

    name: str
    model: Any
    loss: float
    curves: list[dict[str, float]]
    stopped: str | None = None


class Progress(keras.callbacks.Callback):  # type: ignore[misc]
    """Shows the epochs of a training in one line, keeps its curves, and ends it when its time is up.

    Args:
        name: of what is trained.
        time_s: how long training may take; what a resumed training took before does not count. None for no limit.
    """

    # Called once a compiled call, not once a step.
    every_batch = False

    def __init__(self, name: str, time_s: float | None = None) -> None:
        super().__init__()
        self.name, self.time_s = name, time_s
        self.curves: list[dict[str, float]] = []
        self.used_s = 0.0
        self.best = math.inf
        self.stopped: str | None = None
        self._since = self._shown = time.monotonic()

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"curves": self.curves, "used_s": self._used(), "best": self.best}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.curves, self.used_s, self.best = list(state["curves"]), state["used_s"], state["best"]
        self._since = time.monotonic()

    def _used(self) -> float:
        return self.used_s + time.monotonic() - self._since

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._end_in_time()

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """What a frozen part is asked before training counts as training."""
        self._end_in_time()

    def _end_in_time(self) -> None:
        if self.time_s is not None and time.monotonic() - self._since > self.time_s:
            raise TimeIsUp

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.curves.append({name: float(value) for name, value in (logs or {}).items()})
        self.best = min(self.best, self.curves[-1].get("val_loss", math.inf))
        if sys.stdout.isatty() and time.monotonic() - self._shown > _EVERY_S:
            self._shown = time.monotonic()
            PROGRESS.info("  %s", self._line(epoch), extra=REPLACED)

    def _line(self, epoch: int) -> str:
        epochs = int(self.params.get("epochs") or 0)
        left = self._used() / (epoch + 1) * (epochs - epoch - 1)
        if self.time_s is not None:
            left = min(left, self.time_s - (time.monotonic() - self._since))
        return (
            f"{self.name}: epoch {epoch + 1}, validation loss {self.curves[-1].get('val_loss', math.nan):.4g}, "
            f"best {self.best:.4g}, at most {_spoken(left)} left"
        )

    def interrupted(self, error: KeyboardInterrupt) -> None:
        """Training ended before it was done."""
        self.stopped = "time" if isinstance(error, TimeIsUp) else "interrupted"

    def trained(self, model: Any) -> Trained:
        """What came of it."""
        why = {"time": ", its time is up", "interrupted": ", interrupted", None: ""}[self.stopped]
        done = "no epoch is over yet"
        if self.curves:
            done = f"{counted(len(self.curves), 'epoch')}, validation loss {self.best:.4g}"
        say(f"  {self.name}: {done}, {_spoken(self._used())}{why}")
        return Trained(self.name, model, self.best, self.curves, self.stopped)


def say(line: str) -> None:
    """A line for whoever trains."""
    PROGRESS.info(line)


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
