"""`stoker.Trainer`: your own step, and everything around it.

    def step(model, batch):
        x, y = batch
        return keras.losses.mse(y, model(x, training=True))

    trainer = stoker.Trainer(model, keras.optimizers.Adam(), step, clip=stoker.Clip(global_norm=1.0), ema=0.999)
    history = trainer.fit(x, y, epochs=10, checkpoint="run")

The step is compiled into the loop that `stoker.fit` runs, with the same feeds, plans, callbacks and checkpoints. For
full control, subclass and override `train_step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from stoker import deprecation
from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import strategy_of
from stoker.tf_internals.types import (
    Callbacks,
    Data,
    History,
    Model,
    Nest,
    Optimizer,
    Strategy,
    Tensor,
    Verbose,
)
from stoker.train.checkpoint.options import CheckpointLike
from stoker.train.custom.in_parts import add_up_step
from stoker.train.custom.parts import UpdateOptions, UpdateState, name_each
from stoker.train.custom.program import Division, Journal, Models, trainer_program
from stoker.train.custom.step import TracedSteps, add_sum, takes_training
from stoker.train.custom.updating import Logs
from stoker.train.evaluate import evaluate_program
from stoker.train.execution.feeding import sources
from stoker.train.execution.model_kinds import check_backend
from stoker.train.execution.parts import PartSize
from stoker.train.planning.memory import parse_memory
from stoker.train.planning.plan import PlanLike
from stoker.train.preparing import prepare_run
from stoker.train.program import TrainingProgram
from stoker.train.request import FitRequest
from stoker.train.tracebacks import filter_errors
from stoker.train.update.averaging import EMA
from stoker.train.update.balancing import Balance, Weight
from stoker.train.update.clipping import Clip
from stoker.train.update.means import StepResult
from stoker.train.update.patterns import Rate, Span
from stoker.train.update.scaling import LossScale
from stoker.train.update.watching import Spike
from stoker.train.workers.shares import check_distributed
from stoker.train.workers.strategy import check_strategy


class Trainer(TracedSteps):
    """Trains one or several models with a step of your own."""

    def __init__(
        self,
        model: Model,
        optimizer: Optimizer,
        step: Callable[..., StepResult] | None = None,
        *,
        evaluate: Callable[..., StepResult] | None = None,
        losses: Mapping[str, Weight] | Balance | None = None,
        clip: Clip | None = None,
        rates: Mapping[str, Rate] | None = None,
        freeze: str | Iterable[str] | Mapping[str, Span] | None = None,
        accumulate: int = 1,
        ema: EMA | float | None = None,
        loss_scale: LossScale | None = None,
        stop_on_nan: bool = True,
        on_spike: Spike | None = None,
        metrics: Sequence[keras.metrics.Metric] = (),
        seed: int = 0,
        strategy: Strategy = None,
        memory: int | str | None = None,
    ) -> None:
        """Nothing is traced or built before the first `fit`.

        Args:
            model: a Keras model, or a dict of them by name.
            optimizer: a Keras optimizer, or one for each name.
            step: `step(model, batch)` returns the loss, a dict of losses, or (losses, a dict of metrics), as means over
                the rows of the batch. With a parameter `training` it also serves validation. Leave it out if you
                override `train_step`.
            evaluate: `evaluate(model, batch)`, like `step`, for validation.
            losses: the weights of several losses: numbers, "auto", or a `Balance`.
            clip: limits for gradients.
            rates: learning rates by name pattern: numbers, schedules, `Times(factor)`.
            freeze: name patterns of variables not to train: for good, until an update, or during a range of updates.
            accumulate: how many batches make one update.
            ema: keep a moving average of the weights, and evaluate with it.
            loss_scale: how the loss scale changes; a model that computes in float16 always has one.
            stop_on_nan: stop at the first loss or gradient that is not finite, with the weights from before it.
            on_spike: after a spike of the loss, restore the checkpoint before it and continue differently.
            metrics: Keras metrics that your step updates; they are shown and reset with each epoch.
            seed: the seed of `self.random`, a generator to draw from in a step; checkpoints keep its position.
            strategy: the strategy that the models were made under, such as `stoker.strategy()`; by default the models'.
            memory: how much of a GPU's memory a step may need, such as "14GiB", or "auto" for what there is. If a batch
                needs more, it is cut into as few parts as fit, and the update is that of the whole batch.
        """
        options = UpdateOptions(
            losses=losses,
            clip=clip,
            rates=rates,
            freeze=freeze,
            accumulate=accumulate,
            ema=EMA(ema) if isinstance(ema, int | float) else ema,
            loss_scale=loss_scale,
            stop_on_nan=stop_on_nan,
            on_spike=on_spike,
        )
        check_backend("Trainer")
        models = name_each(model, keras.Model, "model")
        optimizers = name_each(optimizer, keras.optimizers.Optimizer, "optimizer")
        if set(models) != set(optimizers):
            raise ArgumentError(
                f"models {sorted(models)}, optimizers {sorted(optimizers)}: give one for each."
            )
        if strategy is not None and any(one.distribute_strategy is not strategy for one in models.values()):
            raise ArgumentError(
                f"the model was not made under the {type(strategy).__name__}: make it in strategy.scope()."
            )
        super().__init__(models, optimizers, options, metrics, seed)
        self._step = step
        self._evaluate = evaluate
        self._memory = parse_memory(memory)
        self._check()
        self.callback_model = self._model_for_callbacks()

    @property
    def workings(self) -> UpdateState:
        """The name of `update_state` in 0.1.0."""
        deprecation.warn("Trainer.workings", "Trainer.update_state", removed_in="0.4")
        return self.update_state

    # One step, on one replica, with its share of the batch: override these for full control.

    def train_step(self, batch: Nest) -> Logs:
        """Run one step: forward pass, gradients, `minimize` for each optimizer; return the values for the logs."""
        assert self._step is not None
        step, part = self._step, next(iter(self.models))
        by_gradients = self._updating and self.update_state.balancing.by_gradients

        def forward(tape: tf.GradientTape, rows: Nest = batch) -> tuple[Logs, Logs, Tensor]:
            with tape:
                losses, metrics = self._forward(step, rows, training=True)
                return losses, metrics, self._total(losses)

        def local() -> Any:
            tape = tf.GradientTape()
            losses, metrics, total = forward(tape)
            return losses, metrics, total, self.gradients(tape, total, part)

        def in_parts(size: PartSize) -> Any:
            def find_slopes(tape: tf.GradientTape, loss: Tensor) -> list[Any]:
                return self.gradients(tape, loss, part)

            models, compiled = self.models.values(), self._moment.compiled
            return add_up_step(batch, size, forward, find_slopes, models, compiled=compiled)

        weights: Logs = {}
        if by_gradients:
            tape = tf.GradientTape(persistent=True)
            losses, metrics, _ = forward(tape)
            total, weights = self._minimize_balanced(tape, losses, part)
        elif type(self).minimize is not Trainer.minimize:
            # An overridden `minimize` asks the tape for what it needs.
            tape = tf.GradientTape()
            losses, metrics, total = forward(tape)
            self.minimize(tape, total, part)
        else:
            size = self._part_size
            computed = self.alone(local) if size is None else in_parts(size)
            losses, metrics, total, gradients = computed
            self.apply(gradients, total, part)
        shown = self.update_state.balancing.describe_weights(weights) if self._updating else {}
        return {**add_sum(losses, total), **metrics, **shown}

    def test_step(self, batch: Nest) -> Logs:
        """Run one step of a validation; return the values for the logs."""
        step = self._evaluate or self._step
        if step is None or (step is self._step and not takes_training(step)):
            raise ArgumentError(
                "to evaluate, give the step a parameter `training`, or the trainer evaluate=function(model, batch); "
                "with a train_step of your own, override test_step too."
            )
        losses, metrics = self._forward(step, batch, training=False)
        return {**add_sum(losses, self._total(losses)), **metrics}

    # The methods that a train_step calls.

    def minimize(self, tape: tf.GradientTape, loss: Tensor, part: str = "model") -> None:
        """Update a part's weights against a loss: gradients, scaling, clipping, rates and everything else."""
        self.apply(self.gradients(tape, loss, part), loss, part)

    def gradients(self, tape: tf.GradientTape, loss: Tensor, part: str = "model") -> list[Tensor]:
        """Return the gradients of a loss for a part's variables, multiplied by the loss scale if there is one."""
        return super().gradients(tape, loss, part)

    def apply(self, gradients: Sequence[Tensor], loss: Tensor, part: str = "model") -> None:
        """Update a part's weights by the gradients from `gradients`, which you may have changed."""
        super().apply(gradients, loss, part)

    @property
    def parts_refusal(self) -> str | None:
        """The reason why a batch cannot be cut into parts, or None."""
        if not self.updates_last or type(self).minimize is not Trainer.minimize:
            return "a train_step or minimize of your own takes the batch as it is"
        losses = self.options.losses
        if isinstance(losses, Balance) and losses.method == "gradients":
            return "losses are balanced by the gradients of whole batches"
        return super().parts_refusal

    @filter_errors
    def fit(
        self,
        x: Data = None,
        y: Data = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Verbose = "auto",
        callbacks: Callbacks = None,
        validation_split: float = 0.0,
        validation_data: Data = None,
        shuffle: bool | str = True,
        sample_weight: Data = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
        *,
        evaluate_every: int | None = None,
        plan: PlanLike = None,
        checkpoint: CheckpointLike = None,
        divide: str = "share",
        data_service: str | None = None,
        scale_rate: bool | str = False,
    ) -> History:
        """Train: the arguments, feeds, plans, callbacks and checkpoints of `stoker.fit`.

        Args:
            x: the data, as `stoker.fit` takes it. The step gets batches of it: `x`, `(x, y)`, or whatever a dataset
                holds.
            evaluate_every: evaluate on the validation data every this many steps, as well as at the end of an epoch.
            plan: how to run, instead of letting Stoker decide.
            checkpoint: a directory, or a `stoker.Checkpoint`; after a crash, the same call continues where it was.
            divide: how the workers of a job share the data, as in `stoker.fit`; so are `data_service` and `scale_rate`.

        Returns:
            Keras' `History` with three more attributes: `plan`, `events` (values that were not finite, spikes,
            recoveries) and `evaluations` (the results of `evaluate_every`).
        """
        request = FitRequest.from_call({**locals(), "memory": self._memory})
        check_strategy(strategy_of(one) for one in self.models.values())
        held_out = validation_data is not None or validation_split > 0
        self._check_run(evaluate_every, held_out, checkpoint, ordered_by_us=bool(shuffle) and _is_rows(x))
        if self._update_state is not None:
            self.update_state.halt.clear()
        journal = Journal()

        def program(division: Division) -> TrainingProgram:
            return trainer_program(self, journal, division, evaluate_every=evaluate_every, verbose=verbose)

        history = prepare_run(request, self.replicas.group, program).train()
        history.events, history.evaluations = journal.events, journal.evaluations
        return history

    def evaluate(
        self, x: Data = None, y: Data = None, batch_size: int | None = None, steps: int | None = None
    ) -> dict[str, float]:
        """Return the results of `test_step` over data, with the averaged weights if there are any."""
        program = trainer_program(self, Journal())
        check_distributed(x, None, {}, self.replicas.group)
        source = sources.source(x, y, batch_size=batch_size, steps_per_epoch=steps)
        return evaluate_program(program, source, (x, y))

    def _model_for_callbacks(self) -> Model:
        if len(self.models) > 1:
            return Models(self.models, self.optimizers)
        model, optimizer = self.model, next(iter(self.optimizers.values()))
        if model.compiled and model.optimizer is not optimizer:
            raise ArgumentError(
                "the model was compiled with a different optimizer: give the trainer model.optimizer, "
                "or do not compile it."
            )
        # Callbacks that change the rate look for the optimizer here.
        model.optimizer = optimizer
        return model

    def _check_run(
        self, evaluate_every: int | None, held_out: bool, checkpoint: CheckpointLike, *, ordered_by_us: bool
    ) -> None:
        if evaluate_every is not None and (not held_out or evaluate_every < 1):
            raise ArgumentError(
                f"evaluate_every={evaluate_every!r}: give a number of steps, and validation_data to evaluate on."
            )
        if self.options.on_spike is not None and checkpoint is None:
            raise ArgumentError(
                'on_spike goes back to a checkpoint: give fit(..., checkpoint="directory") too.'
            )
        if self.options.on_spike is not None and self.options.on_spike.reorder and not ordered_by_us:
            raise ArgumentError(
                "Spike(reorder=True) needs arrays and shuffle=True: a dataset has its own order, so lower the rate."
            )

    def _check(self) -> None:
        overridden = type(self).train_step is not Trainer.train_step
        self.updates_last = not overridden
        if self._step is None and not overridden:
            raise ArgumentError("give a step(model, batch) that returns the loss, or override train_step.")
        if self._step is not None and (overridden or len(self.models) > 1):
            raise ArgumentError("a step function serves one model: for several, override train_step instead.")
        if overridden and self.options.losses is not None:
            raise ArgumentError(
                "losses= weighs what a step function returns: with a train_step of your own, weigh them there."
            )


def _is_rows(x: Data) -> bool:
    """Return whether the data is arrays, rather than a pipeline that has its own order."""
    return not isinstance(x, tf.data.Dataset | keras.utils.PyDataset | Iterator)
