"""The output of training: Keras' progress bar with steps per second and the remaining time, and the plan."""

from __future__ import annotations

import os
from collections.abc import Iterable

from stoker.tf_internals import keras_training
from stoker.tf_internals.types import LogValue, Verbose
from stoker.train.checkpoint.resume import RunProgress
from stoker.train.planning.plan import Plan
from stoker.units import quantity


class Bar(keras_training.SpeedBar):
    """Keras' bar, with steps per second and every metric exactly as reported.

    A metric is already a mean, so the bar must not take a mean of means. Keras' older versions have no argument for
    this.
    """

    def update(
        self, current: int, values: Iterable[tuple[str, LogValue]] | None = None, finalize: bool | None = None
    ) -> None:
        """Update the bar, as Keras declares it."""
        self.stateful_metrics.update(name for name, _ in values or ())
        super().update(current, values, finalize)

    def describe_speed(self, seconds: float, unit: str) -> str:
        if seconds <= 0:
            return " ..."
        rate = 1.0 / seconds
        shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
        return f" {shown} {unit}s/s"


class ProgressBar(keras_training.BarCallback):
    """The progress bar of `fit`."""

    def make_bar(self) -> Bar:
        return Bar(target=self.target, verbose=self.verbose, unit_name="step")


def show_plan(plan: Plan) -> None:
    """Print the plan and its reasons in one line."""
    keras_training.show(f"stoker: {plan.line()}")


def show_resume(progress: RunProgress, directory: str | os.PathLike[str], epochs: int) -> None:
    """Print one line about the checkpoint that this run resumes from."""
    done = int(progress["epoch"])
    if progress["begun"]:
        show(f"{directory} continues in epoch {done + 1} of {epochs}, at step {progress['step']:,}")
    elif progress["stop_training"] or done >= epochs:
        show(f"{directory} holds a finished run of {quantity(done, 'epoch')}: nothing is left to train")
    else:
        show(f"{directory} continues after {done} of {quantity(epochs, 'epoch')}")


def show(line: str, verbose: Verbose = 2) -> None:
    """Print any other line of the trainer, below the bar if there is one."""
    below = "\n" if verbose not in (0, 2) else ""
    keras_training.show(f"{below}stoker: {line}")
