"""A compiled Keras model as a program: on one replica by its own steps, on several through the trainer's update.

On several replicas, Keras' `train_step` leaves the sum to the optimizer. That adds up gradients with one collective per
variable, clips on each replica alone and looks for infinities only on the first one. Here, the same loss and the same
metrics go through the one sum and the one update of `step`. This would bypass a `train_step` of the model's own, so
such a model is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals import keras_layers, keras_training
from stoker.tf_internals.keras_losses import MEAN_REDUCTIONS
from stoker.tf_internals.keras_training import strategy_of, supports_xla
from stoker.tf_internals.types import Model, Nest, Tensor, Variable
from stoker.train.custom.parts import UpdateOptions
from stoker.train.custom.program import Division, TrainerLoops
from stoker.train.custom.step import TracedSteps
from stoker.train.execution import fused_update, keras_step, parted_step
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding.streamed import take_first_part
from stoker.train.execution.kept import part_size_of, traces_of
from stoker.train.execution.loop import CompiledLoop, Logs, Step
from stoker.train.execution.own_methods import is_own
from stoker.train.execution.parts import Cut, PartSize
from stoker.train.program import CheckpointedState, StepLoops, TrainingCourse, TrainingProgram
from stoker.train.update.replicas import row_count
from stoker.train.update.scaling import KerasLossScaler, LossScale
from stoker.train.variables import named_variables
from stoker.train.workers.copies import reset
from stoker.train.workers.group import Group, is_replicated


def keras_program(model: Model) -> TrainingProgram:
    """Return the program of a compiled model on one replica."""
    return TrainingProgram(
        KerasLoops(model), KerasCourse(model), CheckpointedState(model), uses_own_evaluate=True
    )


class KerasLoops(StepLoops):
    """Loops of Keras' own steps."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, Group())
        # Variables made under a strategy have a type of their own, even if the strategy has one replica.
        strategy = strategy_of(model)
        self.fuses = strategy is None
        self.replicated = not self.fuses and not is_replicated(strategy)
        self.eager = bool(model.run_eagerly) or tf.config.functions_run_eagerly()

    def step(self, kind: str) -> Step:
        return keras_step.bind_weakly(self.model, kind)

    def loop(
        self, kind: str, feed: BatchFeed, jit: str, *, fused: bool = False, cut: Cut | None = None
    ) -> CompiledLoop:
        size = None if cut is None else part_size_of(self.model, cut)
        return keras_step.keras_loop(self.model, kind, feed, jit, eager=self.eager, fused=fused, size=size)

    def parts_refusal(self) -> str | None:
        if not self.fuses:
            return "the model was made under a strategy of one replica"
        return parted_step.find_refusal(self.model)

    def jit_refusal(self) -> str | None:
        if self.eager:
            return "steps run eagerly"
        if self.replicated:
            return "the model was made under a strategy"
        if not supports_xla(self.model):
            return "a layer of the model does not support XLA"
        # compile() turns "auto" into False on a machine with CPUs only, so False says nothing on such a machine.
        if not fused_update.on_processors() and not self.model.jit_compile:
            return "the model was compiled with jit_compile=False"
        return None

    def jit_demanded(self) -> bool:
        return bool(self.model.jit_compile) and self.jit_refusal() is None

    def update_refusal(self, steps: int, *, fused: bool) -> str | None:
        if self.eager:
            return "steps run eagerly"
        if fused and fused_update.is_plain_adam(self.model.optimizer):
            return "one kernel does it"
        return fused_update.refusal(self.model, steps)


class KerasCourse(TrainingCourse):
    """Resets and reads Keras' metrics, and finishes its optimizer."""

    def reset(self) -> None:
        self.model.reset_metrics()

    def results(self, logs: Logs) -> Logs:
        return keras_step.results(self.model, logs)

    def finish(self) -> None:
        if self.model.optimizer is not None:
            self.model.optimizer.finalize_variable_values(self.model.trainable_weights)


class KerasSteps(TracedSteps):
    """The steps of a compiled model, on all replicas of the strategy under which it was made."""

    updates_last = True

    def __init__(self, model: Model) -> None:
        _check(model)
        optimizer, scale = model.optimizer, None
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            scale = LossScale(optimizer.initial_scale, optimizer.dynamic_growth_steps)
            optimizer = optimizer.inner_optimizer
        options = UpdateOptions(loss_scale=scale, stop_on_nan=False, keeps_averages=True)
        super().__init__({"model": model}, {"model": optimizer}, options, [], seed=0)
        self.callback_model = model

    @property
    def parts_refusal(self) -> str | None:
        return super().parts_refusal or parted_step.find_refusal(self.callback_model)

    def serves(self, model: Model) -> bool:
        """Return whether these are still the model's steps; its optimizer may have been replaced."""
        return self.optimizers["model"] is getattr(model.optimizer, "inner_optimizer", model.optimizer)

    def build(self, batch: Nest) -> None:
        """Create all variables, including those of the metrics: under a strategy, a replica cannot create them."""
        if self._update_state is None:
            with tf.init_scope(), self.replicas.scope():
                keras_training.build(self.model, take_first_part(batch))
        super().build(batch)
        scaled = self.model.optimizer
        if isinstance(scaled, keras.optimizers.LossScaleOptimizer):
            # Keep the scale where the model, its checkpoints and its callbacks look for it.
            self.update_state.parts["model"].update.scaler = KerasLossScaler(scaled)

    def train_step(self, batch: Nest) -> Logs:
        """Run one training step, as Keras does it."""
        size = self._part_size
        if size is not None:
            self._train_in_parts(batch, size)
            return {}

        def local() -> Any:
            with tf.GradientTape() as tape:
                loss, predicted = self._forward_pass(batch, training=True)
            return loss, predicted, _masks(predicted), self.gradients(tape, loss, "model")

        loss, predicted, masks, gradients = self.alone(local)
        _restore_masks(predicted, masks)
        self.apply(gradients, loss, "model")
        self._measure(batch, loss, predicted)
        return {}

    def _train_in_parts(self, batch: Nest, size: PartSize) -> None:
        def find_slopes(tape: tf.GradientTape, loss: Tensor) -> list[Any]:
            return self.gradients(tape, loss, "model")

        done = parted_step.run_parts(self.model, batch, size, find_slopes, compiled=self._moment.compiled)
        self.apply(done.gradients, done.loss, "model")

    def test_step(self, batch: Nest) -> Logs:
        """Run one test step, which only updates metrics."""
        self._measure(batch, *self._forward_pass(batch, training=False))
        return {}

    def _forward_pass(self, batch: Nest, *, training: bool) -> tuple[Tensor, Tensor]:
        """Return the loss of a forward pass, and its predictions."""
        return keras_training.forward(self.model, batch, training=training)

    def _measure(self, batch: Nest, loss: Tensor, predicted: Tensor) -> None:
        """Update the metrics with a forward pass."""
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        rows = row_count(x)
        # The mean of a replica without rows is NaN.
        own = tf.where(rows > 0, loss, tf.zeros_like(loss))
        keras_training.loss_tracker(self.model).update_state(own, sample_weight=rows)
        self.model.compute_metrics(x, y, predicted, sample_weight=weights)

    def results(self) -> Logs:
        return dict(self.model.get_metrics_result())


def keras_replicas_program(model: Model, division: Division | None = None) -> TrainingProgram:
    """Return the program of a compiled model on several replicas.

    Its state and results equal those of a single replica.
    """
    steps = traces_of(model).keep_owned(KerasSteps, lambda one: one.serves(model), model)
    if division is not None:
        division.apply(steps)
    return TrainingProgram(
        KerasReplicaLoops(steps), KerasReplicaCourse(steps), KerasReplicaState(steps), uses_own_evaluate=True
    )


class KerasReplicaLoops(TrainerLoops):
    """Loops of `KerasSteps`."""

    def __init__(self, steps: KerasSteps) -> None:
        super().__init__(steps, unwraps=False)
        self._alone = KerasLoops(self.model)

    def jit_refusal(self) -> str | None:
        return super().jit_refusal() or self._alone.jit_refusal()

    def jit_demanded(self) -> bool:
        return bool(self.model.jit_compile) and self.jit_refusal() is None


class KerasReplicaCourse(TrainingCourse):
    """Resets Keras' metrics, copy by copy, and finishes its optimizer."""

    def __init__(self, steps: KerasSteps) -> None:
        super().__init__(steps.callback_model)
        self._steps = steps

    def reset(self) -> None:
        reset(self.model.metrics)
        self._steps.reset_training_means()

    @contextmanager
    def validation_scope(self) -> Iterator[None]:
        reset(self.model.metrics)
        yield

    def finish(self) -> None:
        KerasCourse(self.model).finish()


class KerasReplicaState(CheckpointedState):
    """The state of the model alone: what a single process saves and resumes from."""

    def __init__(self, steps: KerasSteps) -> None:
        super().__init__(steps.callback_model)
        self._steps = steps

    def variables(self, extra: Mapping[str, Variable]) -> Mapping[str, Variable]:
        own = {id(one) for one in self._steps.state.values()}
        return named_variables(
            self.model, extra={name: one for name, one in extra.items() if id(one) not in own}
        )


def _check(model: Model) -> None:
    name = type(model.distribute_strategy).__name__
    if model.run_eagerly or tf.config.functions_run_eagerly():
        raise ArgumentError(f"run_eagerly=True: steps on the replicas of a {name} cannot run eagerly")
    own = [name for name in (*keras_step.STEPS, "reset_metrics") if is_own(model, name)]
    if own:
        raise ArgumentError(
            f"{type(model).__name__} has a {own[0]} of its own, which stoker.fit cannot run on the replicas of a "
            f"{name}: write it as the step of a stoker.Trainer"
        )
    for loss in keras_training.given_losses(model):
        reduction = getattr(loss, "reduction", "auto")
        # The replicas' means over rows, weighted by their rows, make that of the batch.
        if reduction not in MEAN_REDUCTIONS:
            raise ArgumentError(
                f"the loss {loss.name!r} has reduction={reduction!r}: on several replicas only a mean over the rows "
                "can be combined; leave the reduction out"
            )
    optimizer = model.optimizer
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if inner.gradient_accumulation_steps:
        raise ArgumentError(
            f"{type(inner).__name__}(gradient_accumulation_steps=...) is not supported on several replicas: use "
            "stoker.Trainer with accumulate="
        )


def _masks(predicted: Tensor) -> list[Tensor]:
    """Return the masks that Keras attached to tensors, which are lost when the tensors leave a function."""
    return [keras_layers.mask_of(one) for one in keras.tree.flatten(predicted)]


def _restore_masks(predicted: Tensor, masks: list[Tensor]) -> None:
    for one, mask in zip(keras.tree.flatten(predicted), masks, strict=True):
        if mask is not None:
            keras_layers.set_mask(one, mask)
