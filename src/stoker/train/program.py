"""What is trained: a step, and what an epoch needs around it. `fit` trains a compiled Keras model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from keras.src.trainers.trainer import model_supports_jit

from stoker.train.execution import fused_adam, fused_parts, fused_update, keras_step
from stoker.train.execution.feed import Feed
from stoker.train.execution.kept import kept
from stoker.train.execution.loop import Logs, Loop, Step
from stoker.train.variables import named_variables
from stoker.train.workers.group import Group, replicated


class Program:
    """`Epochs` trains one of these. Override what differs."""

    model: Any
    """The Keras model callbacks see."""
    eager: bool = False
    """Run the steps eagerly, compile nothing."""
    stop_points: int | None = None
    """No compiled call crosses a multiple of so many steps of the run."""
    saves_start: bool = False
    """Whether a checkpoint of the very start is wanted."""
    fingerprint: str = ""
    """Readable: what a checkpoint must agree with to be resumed."""
    group: Group = Group()
    """The workers that train it together."""
    fuses: bool = False
    """Whether its loops can have parts of the step fused: the optimizer's update, batch normalisation."""
    fused: bool = False
    """Whether those of `fused_parts` are to be, in the loops that are made from now on."""
    uses_own_evaluate: bool = False
    """Whether an `evaluate` of the model's own validates it, as under Keras' `fit`."""
    replicated: bool = False
    """Whether steps run on replicas. XLA compiles what each computes alone, then, since it knows no collectives."""

    def step(self, kind: str) -> Step:
        """The callable that is traced: `kind` is "train_step" or "test_step"."""
        return self.train_step if kind == "train_step" else self.test_step

    def loop(self, kind: str, feed: Feed, jit: str) -> Loop:
        """The loop for this step over this feed: the kept one, if the model is what it was."""

        def make() -> Loop:
            return Loop(
                self.step(kind),
                feed,
                jit=jit,
                eager=self.eager,
                closing=self.closing(),
                together=None if self.group.alone else self.group.everywhere,
            )

        return kept(self.model).loop(kind, feed, make, jit="eager" if self.eager else jit, owner=self.owner())

    def closing(self) -> Callable[[], Logs] | None:
        """Traced after the last step of a call: logs that are costly to have at every step."""
        return None

    def train_step(self, batch: Any) -> Logs:
        """Traced: one update; the epoch's running results."""
        raise NotImplementedError

    def test_step(self, batch: Any) -> Logs:
        """Traced: the running results of a validation."""
        raise NotImplementedError

    def reset(self) -> None:
        """On the host, before an epoch and before a validation: metrics to zero."""

    def end_epoch(self) -> None:
        """On the host, after an epoch's last step, before its logs and its validation."""

    def results(self, logs: Logs) -> Logs:
        """The logs of an epoch or a validation, given the last step's."""
        return logs

    def after_call(self, step: int, logs: Mapping[str, float]) -> str | None:
        """On the host, when a call's logs were read, before a checkpoint.

        Returns:
            None; "stop"; "evaluate": validate here and now; "rewind": go back to the checkpoint before this call.
        """
        return None

    @contextlib.contextmanager
    def validating(self) -> Iterator[None]:
        """Around a validation."""
        self.reset()
        yield

    def evaluated(self, step: int, logs: Mapping[str, float]) -> None:
        """What a validation that `after_call` asked for came to."""

    def goes_back_before(self, step: int) -> int:
        """After "rewind" at this step: the checkpoint gone back to is of a step before this one, if there is any."""
        return step

    def rewound(self, step: int) -> int:
        """The run went back to this step. A number other than 0 gives the data another order from here."""
        return 0

    def progress(self) -> dict[str, Any]:
        """What a checkpoint keeps beside variables: plain values, for `go_on`."""
        return {}

    def go_on(self, progress: Mapping[str, Any]) -> None:
        """In a new process: what `progress` gave."""

    def finish(self) -> None:
        """After the last epoch."""

    def variables(self, extra: Mapping[str, tf.Variable]) -> Mapping[str, tf.Variable]:
        """The state a checkpoint keeps, once everything is built; `extra` is what the traced steps touch."""
        return named_variables(self.model, extra=extra)

    def owner(self) -> object:
        """Whose steps they are: loops are kept for the same owner, by identity."""
        return type(self)

    def reads(self, *, apart: bool) -> None:
        """Told before the first step: whether each worker reads rows of its own."""

    def scales_rates(self, factor: float) -> None:
        """Told before the first step: what all rates are multiplied by; 1 on one replica."""

    def trial_loop(self, feed: Feed, jit: str) -> Loop:
        """What XLA is tried on: the loop itself, or, where replicas exchange, what one of them does without."""
        return self.loop("train_step", feed, jit)

    def jit_refusal(self) -> str | None:
        """Why XLA is out of question, or None."""
        return None

    def jit_demanded(self) -> bool:
        """Whether the user asked for XLA."""
        return False

    def update_refusal(self, steps: int) -> str | None:
        """Of one that `fuses`: why the optimizer's update is not compiled by itself for so many steps, or None."""
        raise NotImplementedError


class KerasProgram(Program):
    """A compiled Keras model: its own `train_step`, `test_step`, metrics and optimizer."""

    uses_own_evaluate = True

    def __init__(self, model: Any) -> None:
        self.model = model
        # A strategy's variables are of its own kind, even where it has one replica. (Several: KerasReplicasProgram.)
        self.fuses = model._distribute_strategy is None
        self.replicated = not self.fuses and not replicated(model._distribute_strategy)
        self.eager = bool(model.run_eagerly) or tf.config.functions_run_eagerly()

    def loop(self, kind: str, feed: Feed, jit: str) -> Loop:
        return keras_step.keras_loop(self.model, kind, feed, jit, eager=self.eager, fused=self.fused)

    def step(self, kind: str) -> Step:
        return keras_step.weakly(self.model, kind)

    def reset(self) -> None:
        self.model.reset_metrics()

    def results(self, logs: Logs) -> Logs:
        return keras_step.results(self.model, logs)

    def finish(self) -> None:
        if self.model.optimizer is not None:
            self.model.optimizer.finalize_variable_values(self.model.trainable_weights)

    def jit_refusal(self) -> str | None:
        if self.eager:
            return "steps run eagerly"
        if self.replicated:
            return "the model was made under a strategy"
        if not model_supports_jit(self.model):
            return "a layer of the model does not support XLA"
        # compile() turns "auto" into False on a machine with CPUs only, so False says nothing there.
        if not fused_parts.on_processors() and not self.model.jit_compile:
            return "the model was compiled with jit_compile=False"
        return None

    def jit_demanded(self) -> bool:
        return bool(self.model.jit_compile) and self.jit_refusal() is None

    def update_refusal(self, steps: int) -> str | None:
        if self.eager:
            return "steps run eagerly"
        if self.fused and fused_adam.applies(self.model.optimizer):
            return "one kernel does it"
        return fused_update.refusal(self.model, steps)
