"""A trainer as a program: its loops, what happens around them, and its state."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import keras

from stoker.tf_internals.types import Model, Nest, Optimizer, Tensor, Variable, Verbose
from stoker.train.custom.step import TracedSteps
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.kept import part_size_of, traces_of
from stoker.train.execution.loop import CompiledLoop, Logs, Step
from stoker.train.execution.parts import Cut
from stoker.train.loop.progress import show
from stoker.train.program import CheckpointedState, StepLoops, TrainingCourse, TrainingEvent, TrainingProgram
from stoker.train.update.watching import Trouble
from stoker.train.variables import named_variables
from stoker.train.workers.copies import copies_of

_REASONS = {
    Trouble.NOT_FINITE: "not finite",
    Trouble.GRADIENT: "gradient not finite",
    Trouble.SPIKE: "a spike",
}


@dataclass(frozen=True)
class Division:
    """The division of a run among replicas.

    Attributes:
        apart: whether each worker reads different rows.
        rate_factor: the factor on all learning rates; 1 on one replica.
    """

    apart: bool = False
    rate_factor: float = 1.0

    def apply(self, trainer: TracedSteps) -> None:
        """Make the trainer's next steps run this way."""
        trainer.apart = self.apart
        trainer.replicas.rate_factor = self.rate_factor


@dataclass
class Journal:
    """The events of a run that went wrong, and the results of its evaluations between epochs."""

    events: list[TrainingEvent] = field(default_factory=list)
    evaluations: list[dict[str, float]] = field(default_factory=list)


def trainer_program(
    trainer: TracedSteps,
    journal: Journal,
    division: Division | None = None,
    *,
    evaluate_every: int | None = None,
    verbose: Verbose = 2,
) -> TrainingProgram:
    """Return the program of a `stoker.Trainer`."""
    if division is not None:
        division.apply(trainer)
    return TrainingProgram(
        TrainerLoops(trainer),
        TrainerCourse(trainer, journal, evaluate_every=evaluate_every, verbose=verbose),
        TrainerState(trainer, journal),
    )


class TrainerLoops(StepLoops):
    """Loops of a trainer's steps."""

    def __init__(self, trainer: TracedSteps, *, unwraps: bool = True) -> None:
        """`unwraps`: if only `x` was given, a step gets `x` itself, not a tuple of it."""
        super().__init__(trainer.callback_model, trainer.replicas.group)
        self.trainer = trainer
        self.replicated = trainer.replicas.distributed
        self._unwraps = unwraps

    def step(self, kind: str) -> Step:
        return (
            self._step("run_test_step")
            if kind == "test_step"
            else self._step("run_train_step", compiled=False)
        )

    def loop(
        self, kind: str, feed: BatchFeed, jit: str, *, fused: bool = False, cut: Cut | None = None
    ) -> CompiledLoop:
        step, compiled, closing, size = self.step(kind), False, None, None
        if self.replicated:
            # XLA compiles a part of the step, never the loop.
            compiled = jit != "none" and kind == "train_step" and self.jit_refusal() is None
            jit, closing = "none", self._results()
        if cut is not None and kind == "train_step":
            # XLA compiles the computation of a part.
            size, compiled, jit = part_size_of(self.model, cut), compiled or jit in ("loop", "step"), "none"
        if compiled or size is not None:
            step = self._step("run_train_step", compiled=compiled, size=size)
        together = None if self.group.alone else self.group.is_everywhere
        owner = self.trainer.identity(f"{'step' if compiled else 'none'}{' in parts' if size else ''}")

        def make() -> CompiledLoop:
            return CompiledLoop(step, feed, jit=jit, closing=closing, together=together)

        return traces_of(self.model).loop(kind, feed, make, jit=jit, owner=owner)

    def trial_loop(self, feed: BatchFeed, jit: str, *, fused: bool = False) -> CompiledLoop:
        if not self.replicated:
            return self.loop("train_step", feed, jit)
        return CompiledLoop(self._step("run_alone", compiled=jit != "none"), feed)

    def parts_refusal(self) -> str | None:
        return self.trainer.parts_refusal

    def build(self, batch: Nest) -> None:
        self.trainer.build(batch)

    def jit_refusal(self) -> str | None:
        return self.trainer.exchanges_inside if self.replicated else None

    def _step(self, name: str, **options: Any) -> Step:
        """Return a step of the trainer that does not keep the trainer alive.

        Compiled loops are kept for the model's next run.
        """
        owner = weakref.ref(self.trainer)
        unwraps = self._unwraps

        def run(batch: Nest, *more: Tensor) -> Logs:
            method: Callable[..., Logs] = getattr(owner(), name)
            return method(_unwrap(batch) if unwraps else batch, *more, **options)

        return run

    def _results(self) -> Callable[[], Logs]:
        """Return a function for the logs that runs once, after a call's last step: at every step it would be slow."""
        owner = weakref.ref(self.trainer)

        def results() -> Logs:
            trainer = owner()
            assert trainer is not None
            return trainer.results()

        return results


class TrainerState(CheckpointedState):
    """The state of models and trainer, and the run's events so far."""

    def __init__(self, trainer: TracedSteps, journal: Journal) -> None:
        super().__init__(trainer.callback_model)
        self.trainer = trainer
        self.journal = journal
        # A spike may come before the first checkpoint is due.
        self.saves_start = trainer.options.on_spike is not None

    def variables(self, extra: Mapping[str, Variable]) -> Mapping[str, Variable]:
        return named_variables(self.model, extra={**self.trainer.state, **extra})

    def progress(self) -> dict[str, object]:
        return {"events": self.journal.events, "evaluations": self.journal.evaluations}

    def restore_progress(self, progress: Mapping[str, Any]) -> None:
        self.journal.events[:] = progress["events"]
        self.journal.evaluations[:] = progress["evaluations"]


class TrainerCourse(TrainingCourse):
    """Handles on the host what a trainer's steps noted."""

    def __init__(
        self, trainer: TracedSteps, journal: Journal, *, evaluate_every: int | None, verbose: Verbose
    ) -> None:
        super().__init__(trainer.callback_model)
        self.trainer = trainer
        self.events: list[TrainingEvent] = journal.events
        self.evaluations = journal.evaluations
        self.stop_points = evaluate_every
        self._verbose = verbose if trainer.replicas.group.chief else 0
        self._slowdown = 1.0

    def reset(self) -> None:
        self.trainer.reset_training_means()

    def end_epoch(self) -> None:
        self.trainer.flush()

    @contextmanager
    def validation_scope(self) -> Iterator[None]:
        """Use the averaged weights, if there are any, and leave the training's own metrics untouched."""
        trainer = self.trainer
        # Save them copy by copy: under a strategy, reading a metric adds up all copies.
        variables = [one.value for metric in trainer.metrics for one in metric.variables]
        kept = [(copy, copy.numpy()) for variable in variables for copy in copies_of(variable)]
        trainer.reset_test_means()
        with trainer.averaged_weights() if trainer.options.ema is not None else nullcontext():
            yield
        for variable, value in kept:
            variable.assign(value)

    def after_call(self, step: int, logs: Mapping[str, float]) -> str | None:
        trouble, at, loss = self.trainer.update_state.halt.read()
        if trouble is not Trouble.NONE:
            return self._handle_trouble(trouble, at, loss)
        due = self.stop_points is not None and step % self.stop_points == 0
        return "evaluate" if due else None

    def note_evaluation(self, step: int, logs: Mapping[str, float]) -> None:
        self.evaluations.append({"step": step, **logs})
        if self._verbose:
            shown = ", ".join(f"val_{name} {value:.4g}" for name, value in logs.items())
            show(f"step {step}: {shown}", self._verbose)

    def _handle_trouble(self, trouble: Trouble, step: int, loss: float) -> str:
        """Handle a bad loss: rewind, or stop."""
        spike = self.trainer.options.on_spike
        recoveries = sum(event["event"] == "recovery" for event in self.events)
        if spike is not None and recoveries < spike.retries:
            self._note("recovery", trouble, step, loss)
            # The checkpoint may be from before the last time the rate was lowered.
            self._slowdown = float(self.trainer.update_state.slowdown)
            return "rewind"
        done = "training stops with the weights from before it"
        if spike is not None:
            done = f"this was already recovery number {recoveries}: {done}"
        self._note("stop", trouble, step, loss)
        self._complete({"done": done})
        return "stop"

    def choose_rewind_limit(self, step: int) -> int:
        """Rewind further than last time if the spike came no later: that checkpoint was taken too late."""
        *_, before, now = [None, *(event for event in self.events if event["event"] == "recovery")]
        again = before is not None and now is not None and now["step"] <= before["step"]
        return int(before["back_to"]) if again and before is not None else step

    def go_on_from(self, step: int) -> int:
        """After a rewind, continue with a lower rate or another order, and record it."""
        spike = self.trainer.options.on_spike
        assert spike is not None
        update_state = self.trainer.update_state
        update_state.halt.clear()
        update_state.slowdown.assign(self._slowdown * spike.rate)
        rate = round(float(update_state.slowdown), 6)
        changes = [f"the rate is {rate:.4g} of what it was"] * (spike.rate != 1)
        changes += ["the order of the data changes"] * spike.reorder
        done = f"back to step {step}; from here {' and '.join(changes)}"
        self._complete({"back_to": step, "rate": rate, "reordered": spike.reorder, "done": done})
        return len(self.events) if spike.reorder else 0

    def _note(self, event: str, trouble: Trouble, step: int, loss: float) -> None:
        reason = _REASONS[trouble]
        self.events.append({"event": event, "reason": reason, "step": step, "loss": loss})

    def _complete(self, more: TrainingEvent) -> None:
        """Add the outcome to the last event, and print the event."""
        event = self.events[-1]
        event.update(more)
        if self._verbose:
            what = f"the loss at step {event['step']} was {event['loss']:.4g}, {event['reason']}"
            show(f"{what}: {event['done']}", self._verbose)


class Models(keras.Model):
    """Several models as one, for callbacks and checkpoints."""

    def __init__(self, models: Mapping[str, Model], optimizers: Mapping[str, Optimizer]) -> None:
        super().__init__()
        self.models = list(models.values())
        self.optimizers = list(optimizers.values())
        self.optimizer = self.optimizers[0]
        self.built = True


def _unwrap(batch: Nest) -> Nest:
    """Return what the user's step gets: x if only x was given, otherwise the tuple or dict unchanged."""
    return batch[0] if isinstance(batch, tuple) and len(batch) == 1 else batch
