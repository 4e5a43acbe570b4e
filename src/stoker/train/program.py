"""The program to train, in three parts: the loops of its steps, what happens around them, and what a checkpoint keeps.

Each part is a class with the behaviour that most programs share; a kind of program overrides what differs. Parts do not
change once they are made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import tensorflow as tf

from stoker.tf_internals.types import LogValue, Model, Nest
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.loop import CompiledLoop, Logs, Step
from stoker.train.execution.parts import Cut
from stoker.train.variables import named_variables
from stoker.train.workers.group import Group


class TrainingEvent(TypedDict, total=False):
    """Something that went wrong in a run, and what was done about it."""

    event: str
    reason: str
    step: int
    loss: float
    done: str
    back_to: int
    rate: float
    reordered: bool


class StepLoops:
    """The compiled loops of a model's steps."""

    eager: bool = False
    """Run the steps eagerly, compile nothing."""
    fuses: bool = False
    """Whether its loops can have parts of the step fused: the optimizer's update, batch normalisation."""
    replicated: bool = False
    """Whether steps run on replicas. XLA then compiles what each computes alone, since it knows no collectives."""

    def __init__(self, model: Model, group: Group) -> None:
        self.model = model
        self.group = group

    def step(self, kind: str) -> Step:
        """Return the callable that is traced; `kind` is "train_step" or "test_step"."""
        raise NotImplementedError

    def loop(
        self, kind: str, feed: BatchFeed, jit: str, *, fused: bool = False, cut: Cut | None = None
    ) -> CompiledLoop:
        """Return the loop for this step over this feed: the kept one, if the model has not changed.

        Args:
            kind: "train_step" or "test_step".
            feed: the data.
            jit: what XLA compiles, as in a plan.
            fused: whether to use TensorFlow's kernels for whole parts of the step.
            cut: the parts in which a training step takes its batch; None for the whole batch at once.
        """
        raise NotImplementedError

    def parts_refusal(self) -> str | None:
        """Return why a batch cannot be cut into parts, or None."""
        raise NotImplementedError

    def build(self, batch: Nest) -> None:
        """Create the variables for batches of this kind that cannot be created while tracing on replicas."""

    def trial_loop(self, feed: BatchFeed, jit: str, *, fused: bool = False) -> CompiledLoop:
        """Return the loop to try XLA on: the loop itself or, if replicas exchange values, what one of them runs."""
        return self.loop("train_step", feed, jit, fused=fused)

    def jit_refusal(self) -> str | None:
        """Return why XLA cannot be used, or None."""
        return None

    def jit_demanded(self) -> bool:
        """Return whether the user asked for XLA."""
        return False

    def update_refusal(self, steps: int, *, fused: bool) -> str | None:
        """If `fuses`, return why the optimizer's update is not compiled by itself for this many steps, or None."""
        raise NotImplementedError


class TrainingCourse:
    """The work on the host around calls, epochs and validations."""

    stop_points: int | None = None
    """No compiled call crosses a multiple of this many steps of the run."""
    events: Sequence[TrainingEvent] = ()
    """What went wrong during training, and how it was handled."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def reset(self) -> None:
        """Reset the metrics, before an epoch and before a validation."""

    def end_epoch(self) -> None:
        """Do what comes after an epoch's last step, before its logs and its validation."""

    def results(self, logs: Logs) -> Logs:
        """Return the logs of an epoch or a validation, given those of the last step."""
        return logs

    def after_call(self, step: int, logs: Mapping[str, float]) -> str | None:
        """Do what comes after a call's logs were read, before a checkpoint.

        Returns:
            None, "stop", "evaluate" (validate now) or "rewind" (go back to the checkpoint before this call).
        """
        return None

    @contextlib.contextmanager
    def validation_scope(self) -> Iterator[None]:
        """Prepare for a validation, which runs within the block."""
        self.reset()
        yield

    def note_evaluation(self, step: int, logs: Mapping[str, float]) -> None:
        """Note the results of a validation that `after_call` asked for."""

    def choose_rewind_limit(self, step: int) -> int:
        """After "rewind" at this step, return a limit: the run rewinds to the latest checkpoint below that step."""
        return step

    def go_on_from(self, step: int) -> int:
        """Continue after a rewind to this step; return a number other than 0 to change the data's order from here."""
        return 0

    def finish(self) -> None:
        """Do what comes after the last epoch."""


class CheckpointedState:
    """The state that a checkpoint keeps."""

    saves_start: bool = False
    """Whether to save a checkpoint before the first step."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def variables(self, extra: Mapping[str, tf.Variable]) -> Mapping[str, tf.Variable]:
        """Return the variables, once everything is built; `extra` are those that the traced steps use."""
        return named_variables(self.model, extra=extra)

    def progress(self) -> dict[str, object]:
        """Return the state besides variables: plain values, for `restore_progress`."""
        return {}

    def restore_progress(self, progress: Mapping[str, Any]) -> None:
        """Restore the result of `progress`, in a new process."""

    def note_restored(self) -> None:
        """Note that the variables have got the values of a checkpoint."""


@dataclass(frozen=True)
class TrainingProgram:
    """The program that is trained.

    Attributes:
        loops: the compiled loops of its steps.
        course: the work around calls, epochs and validations.
        state: the state that a checkpoint keeps.
        watch: called after each call of steps, with the step of the run and the values that were read.
        uses_own_evaluate: whether the model's own `evaluate` validates it, as under Keras' `fit`.
    """

    loops: StepLoops
    course: TrainingCourse
    state: CheckpointedState
    uses_own_evaluate: bool = False
    watch: Callable[[int, Mapping[str, LogValue]], None] | None = None

    @property
    def model(self) -> Model:
        """The Keras model that callbacks see."""
        return self.loops.model

    @property
    def group(self) -> Group:
        """The workers that train the program together."""
        return self.loops.group
