"""A compiled Keras model as a program: its own `train_step`, `test_step`, metrics and optimizer."""

from __future__ import annotations

import tensorflow as tf

from stoker.tf_internals.keras_training import strategy_of, supports_xla
from stoker.tf_internals.types import Model
from stoker.train.execution import fused_adam, fused_parts, fused_update, keras_step
from stoker.train.execution.feed import Feed
from stoker.train.execution.loop import Logs, Loop, Step
from stoker.train.program import CheckpointedState, Program, StepLoops, TrainingCourse
from stoker.train.workers.group import Group, replicated


def keras_program(model: Model) -> Program:
    """The program of a compiled model on one replica."""
    return Program(KerasLoops(model), KerasCourse(model), CheckpointedState(model), uses_own_evaluate=True)


class KerasLoops(StepLoops):
    """Loops of Keras' own steps."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, Group())
        # A strategy's variables are of its own kind, even where it has one replica.
        strategy = strategy_of(model)
        self.fuses = strategy is None
        self.replicated = not self.fuses and not replicated(strategy)
        self.eager = bool(model.run_eagerly) or tf.config.functions_run_eagerly()

    def step(self, kind: str) -> Step:
        return keras_step.weakly(self.model, kind)

    def loop(self, kind: str, feed: Feed, jit: str, *, fused: bool = False) -> Loop:
        return keras_step.keras_loop(self.model, kind, feed, jit, eager=self.eager, fused=fused)

    def jit_refusal(self) -> str | None:
        if self.eager:
            return "steps run eagerly"
        if self.replicated:
            return "the model was made under a strategy"
        if not supports_xla(self.model):
            return "a layer of the model does not support XLA"
        # compile() turns "auto" into False on a machine with CPUs only, so False says nothing there.
        if not fused_parts.on_processors() and not self.model.jit_compile:
            return "the model was compiled with jit_compile=False"
        return None

    def jit_demanded(self) -> bool:
        return bool(self.model.jit_compile) and self.jit_refusal() is None

    def update_refusal(self, steps: int, *, fused: bool) -> str | None:
        if self.eager:
            return "steps run eagerly"
        if fused and fused_adam.applies(self.model.optimizer):
            return "one kernel does it"
        return fused_update.refusal(self.model, steps)


class KerasCourse(TrainingCourse):
    """Keras' metrics, and the end of its optimizer."""

    def reset(self) -> None:
        self.model.reset_metrics()

    def results(self, logs: Logs) -> Logs:
        return keras_step.results(self.model, logs)

    def finish(self) -> None:
        if self.model.optimizer is not None:
            self.model.optimizer.finalize_variable_values(self.model.trainable_weights)
