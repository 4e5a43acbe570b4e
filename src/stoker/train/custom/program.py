"""A trainer as `Epochs` sees it: a program with steps, metrics, stops, evaluations and state."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import keras

from stoker.train.custom.step import TracedSteps
from stoker.train.execution.feed import Feed
from stoker.train.execution.loop import Logs, Loop, Step
from stoker.train.loop.progress import show
from stoker.train.program import Program
from stoker.train.update.watching import Trouble
from stoker.train.variables import named_variables
from stoker.train.workers.copies import copies_of

_REASONS = {
    Trouble.NOT_FINITE: "not finite",
    Trouble.GRADIENT: "gradient not finite",
    Trouble.SPIKE: "a spike",
}


class TrainerProgram(Program):
    """Runs a trainer's steps, and deals on the host with what they noted."""

    unwraps = True
    """Whether a step gets `x` alone where only `x` was given, not a tuple of it."""
    _jit = "none"
    """How the loop that is asked for last uses XLA, on replicas."""

    def __init__(self, trainer: TracedSteps, *, evaluate_every: int | None = None, verbose: Any = 2) -> None:
        self.trainer = trainer
        self.model = trainer.callback_model
        self.group = trainer.replicas.group
        self.replicated = trainer.replicas.distributed
        self.stop_points = evaluate_every
        # A spike may come before the first checkpoint is due.
        self.saves_start = trainer.options.on_spike is not None
        self.events: list[dict[str, Any]] = []
        self.evaluations: list[dict[str, float]] = []
        self._verbose = verbose if self.group.chief else 0
        self._slowdown = 1.0

    def step(self, kind: str) -> Step:
        if kind == "test_step":
            return self._weakly("run_test_step")
        return self._weakly("run_train_step", compiled=self._jit == "step")

    def _weakly(self, name: str, **options: Any) -> Step:
        """A step of the trainer. Compiled loops are kept for the model's next run: they must not keep it alive."""
        owner = weakref.ref(self.trainer)
        plain = _plain if self.unwraps else lambda batch: batch

        def run(batch: Any, *more: Any) -> Logs:
            method: Callable[..., Logs] = getattr(owner(), name)
            return method(plain(batch), *more, **options)

        return run

    def closing(self) -> Callable[[], Logs] | None:
        if not self.trainer.replicas.distributed:
            return None
        owner = weakref.ref(self.trainer)

        def results() -> Logs:
            trainer = owner()
            assert trainer is not None
            return trainer.results()

        return results

    def loop(self, kind: str, feed: Feed, jit: str) -> Loop:
        trained = self.replicated and jit != "none" and kind == "train_step"
        self._jit = "step" if trained and self.jit_refusal() is None else "none"
        return super().loop(kind, feed, "none" if self.replicated else jit)

    def trial_loop(self, feed: Feed, jit: str) -> Loop:
        if not self.replicated:
            return self.loop("train_step", feed, jit)
        return Loop(self._weakly("run_alone", compiled=jit != "none"), feed)

    def owner(self) -> object:
        return self.trainer.identity(self._jit)

    def reads(self, *, apart: bool) -> None:
        self.trainer.apart = apart

    def scales_rates(self, factor: float) -> None:
        self.trainer.replicas.rate_factor = factor

    def jit_refusal(self) -> str | None:
        return self.trainer.exchanges_inside if self.replicated else None

    def variables(self, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        return named_variables(self.model, extra={**self.trainer.state, **extra})

    def progress(self) -> dict[str, Any]:
        return {"events": self.events, "evaluations": self.evaluations}

    def go_on(self, progress: Mapping[str, Any]) -> None:
        self.events = list(progress["events"])
        self.evaluations = list(progress["evaluations"])

    def reset(self) -> None:
        self.trainer.reset_training_means()

    def end_epoch(self) -> None:
        self.trainer.flush()

    @contextmanager
    def validating(self) -> Iterator[None]:
        """With the averaged weights, if there are any; the training's own metrics are not touched."""
        trainer = self.trainer
        # Copy by copy: under a strategy, reading a metric adds up all of them.
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
            return self._deal_with(trouble, at, loss)
        due = self.stop_points is not None and step % self.stop_points == 0
        return "evaluate" if due else None

    def evaluated(self, step: int, logs: Mapping[str, float]) -> None:
        self.evaluations.append({"step": step, **logs})
        if self._verbose:
            shown = ", ".join(f"val_{name} {value:.4g}" for name, value in logs.items())
            show(f"step {step}: {shown}", self._verbose)

    def _deal_with(self, trouble: Trouble, step: int, loss: float) -> str:
        """A loss that was not sane: go back, or stop."""
        spike = self.trainer.options.on_spike
        recoveries = sum(event["event"] == "recovery" for event in self.events)
        if spike is not None and recoveries < spike.retries:
            self._note("recovery", trouble, step, loss)
            # The checkpoint may be older than the last time the rate was lowered.
            self._slowdown = float(self.trainer.update_state.slowdown)
            return "rewind"
        done = "training stops with the weights from before it"
        if spike is not None:
            done = f"this was recovery number {recoveries} already: {done}"
        self._note("stop", trouble, step, loss, done=done)
        return "stop"

    def goes_back_before(self, step: int) -> int:
        """A spike no later than the last one: the checkpoint was taken too late, so further back than then."""
        *_, before, now = [None, *(event for event in self.events if event["event"] == "recovery")]
        again = before is not None and now is not None and now["step"] <= before["step"]
        return int(before["back_to"]) if again and before is not None else step

    def rewound(self, step: int) -> int:
        """Back at a checkpoint: go on with a lower rate or another order, and write it down."""
        spike = self.trainer.options.on_spike
        assert spike is not None
        update_state = self.trainer.update_state
        update_state.halt.clear()
        update_state.slowdown.assign(self._slowdown * spike.rate)
        rate = round(float(update_state.slowdown), 6)
        changes = [f"the rate is {rate:.4g} of what it was"] * (spike.rate != 1)
        changes += ["the data comes in another order"] * spike.reorder
        done = f"back to step {step}; from here {' and '.join(changes)}"
        self._complete(back_to=step, rate=rate, reordered=spike.reorder, done=done)
        return len(self.events) if spike.reorder else 0

    def _note(self, event: str, trouble: Trouble, step: int, loss: float, **more: Any) -> None:
        reason = _REASONS[trouble]
        self.events.append({"event": event, "reason": reason, "step": step, "loss": loss})
        if more:
            self._complete(**more)

    def _complete(self, **more: Any) -> None:
        """Add to the last event what came of it, and say it."""
        event = self.events[-1]
        event.update(more)
        if self._verbose:
            what = f"the loss at step {event['step']} was {event['loss']:.4g}, {event['reason']}"
            show(f"{what}: {event['done']}", self._verbose)


class Models(keras.Model):  # type: ignore[misc]
    """Several models as one, for callbacks and checkpoints."""

    def __init__(self, models: Mapping[str, Any], optimizers: Mapping[str, Any]) -> None:
        super().__init__()
        self.models = list(models.values())
        self.optimizers = list(optimizers.values())
        self.optimizer = self.optimizers[0]
        self.built = True


def _plain(batch: Any) -> Any:
    """What the user's step gets: x where only x was given, else the tuple or dict as it came."""
    return batch[0] if isinstance(batch, tuple) and len(batch) == 1 else batch
