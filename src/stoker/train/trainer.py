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

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.train.parts import Options, Part, common_strategy, named
from stoker.train.update.averaging import EMA
from stoker.train.update.balancing import Balance, Weight
from stoker.train.update.clipping import Clip, dense
from stoker.train.update.freezing import Span
from stoker.train.update.means import Means, scalar, take_apart
from stoker.train.update.rates import Rate
from stoker.train.update.replicas import Replicas
from stoker.train.update.scaling import LossScale
from stoker.train.update.watching import Spike, Trouble
from stoker.train.workings import Workings, results_of

Logs = Mapping[str, Any]


@dataclass
class _Moment:
    """What is known while one step is traced on one replica."""

    rows: Any
    share: Any
    # For each update made in the step: its part, its loss over all replicas, and what is wrong with it.
    made: list[dict[str, tuple[Any, Any]]] = field(default_factory=list)


class Trainer:
    """Trains one or several models with a step of your own."""

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        step: Callable[..., Any] | None = None,
        *,
        evaluate: Callable[..., Any] | None = None,
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
    ) -> None:
        """Nothing is traced or built before the first `fit`.

        Args:
            model: a Keras model, or a dict of them by name.
            optimizer: a Keras optimizer, or one for each name.
            step: `step(model, batch)` gives the loss, a dict of losses, or (losses, a dict of metrics): means over
                the rows of the batch. With a parameter `training` it serves evaluation as well. Leave it out if you
                override `train_step`.
            evaluate: `evaluate(model, batch)`, like `step`, for validation.
            losses: the weights of several losses: numbers, "auto", or a `Balance`.
            clip: limits for gradients.
            rates: learning rates by name pattern: numbers, schedules, `Times(factor)`.
            freeze: name patterns of what is not trained: for good, until an update, or during a range of updates.
            accumulate: how many batches make one update.
            ema: keep the moving average of the weights, and evaluate with it.
            loss_scale: how the loss scale moves; a model that computes in float16 has one anyway.
            stop_on_nan: end training at the first loss or gradient that is not finite, with the weights before it.
            on_spike: restore the checkpoint before a spike of the loss, and go on differently.
            metrics: Keras metrics that your step updates; shown and reset with the epoch.
            seed: of `self.random`, the generator for what a step draws; checkpoints keep its place.
        """
        self.models = named(model, keras.Model, "model")
        self.optimizers = named(optimizer, keras.optimizers.Optimizer, "optimizer")
        self.options = Options(
            losses=losses,
            clip=clip,
            rates=rates,
            freeze=freeze,
            accumulate=accumulate,
            ema=EMA(ema) if isinstance(ema, float) else ema,
            loss_scale=loss_scale,
            stop_on_nan=stop_on_nan,
            on_spike=on_spike,
        )
        self.metrics = list(metrics)
        self.random = keras.random.SeedGenerator(seed)
        self.replicas = Replicas(common_strategy(self.models))
        self._step = step
        self._evaluate = evaluate
        self._loss_names: list[str] = []
        self._workings: Workings | None = None
        self._test_means: Means | None = None
        self._local = threading.local()
        self._check()

    @property
    def model(self) -> Any:
        """The model, or the dict of models."""
        return self.models["model"] if list(self.models) == ["model"] else self.models

    # One step, on one replica, with its share of the batch: override these for full control.

    def train_step(self, batch: Any) -> Logs:
        """One step: forward, gradients, `minimize` for each optimizer; returns what the logs show."""
        by_gradients = self._workings is not None and self._workings.balancing.by_gradients
        with tf.GradientTape(persistent=by_gradients) as tape:
            losses, metrics = self._forward(self._step, batch, training=True)
            total = self._total(losses)
        weights: Logs = {}
        if by_gradients:
            total, weights = self._minimize_balanced(tape, losses)
        else:
            self.minimize(tape, total)
        shown = {} if self._workings is None else self._workings.balancing.shown(weights)
        return {**_all(losses, total), **metrics, **shown}

    def test_step(self, batch: Any) -> Logs:
        """One step of a validation; returns what the logs show."""
        step = self._evaluate or (self._step if _takes_training(self._step) else None)
        if step is None:
            raise ArgumentError(
                "to evaluate, give the step a parameter `training`, or the trainer an evaluate=function(model, batch)."
            )
        losses, metrics = self._forward(step, batch, training=False)
        return {**_all(losses, self._total(losses)), **metrics}

    # What a train_step calls.

    def minimize(self, tape: tf.GradientTape, loss: Any, part: str = "model") -> None:
        """Update a part's weights against a loss: gradients, scaling, clipping, rates and all the rest."""
        if self._tracing:
            self.apply(self.gradients(tape, loss, part), loss, part)

    def gradients(self, tape: tf.GradientTape, loss: Any, part: str = "model") -> list[Any]:
        """The gradients of a loss for a part's variables, multiplied by the loss scale if there is one."""
        if loss.dtype == tf.float16:
            raise ArgumentError(
                "the loss is float16: cast it to float32 inside the tape, a scale would overflow it."
            )
        update = self._part(part).update
        # The slope at the loss is the scale: the same as scaling the loss, and it needs no place in the tape.
        slope = None if update.scaler is None else tf.cast(update.scaler.scale, loss.dtype)
        frozen = update.optimizing.frozen
        wanted = [one.value for one, out in zip(update.optimizing.variables, frozen, strict=True) if not out]
        slopes = iter(tape.gradient(loss, wanted, output_gradients=slope))
        return [None if out else next(slopes) for out in frozen]

    def apply(self, gradients: Sequence[Any], loss: Any, part: str = "model") -> None:
        """Update a part's weights by gradients that `gradients` gave, changed as you like."""
        if not self._tracing:
            return
        moment, found, workings = self._moment, self._part(part), self._built()
        whole = self._over_replicas({"loss": scalar("loss", loss)})["loss"]
        scaler, watched = found.update.scaler, self.options.watched
        trouble = found.watch.judge(whole) if watched else tf.constant(Trouble.NONE, tf.int32)
        if scaler is not None:
            # An overflow: the scale goes down. Only when it is at its lowest is the loss itself to blame.
            overflow = (trouble == Trouble.NOT_FINITE) & scaler.may_shrink
            trouble = tf.where(overflow, tf.constant(Trouble.NONE, tf.int32), trouble)
        allowed = tf.logical_not(workings.halt.on) & (trouble == Trouble.NONE)
        finite = found.update.apply(gradients, rows=moment.rows, share=moment.share, allowed=allowed)
        if watched and scaler is None:
            broken = tf.logical_not(finite) & (trouble == Trouble.NONE)
            trouble = tf.where(broken, tf.constant(Trouble.NOT_FINITE, tf.int32), trouble)
        moment.made.append({part: (whole, trouble)})

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Inside, the models have their averaged weights: to evaluate, predict, save or export them."""
        parts = [] if self._workings is None else list(self._workings.parts.values())
        averages = [part.update.averages for part in parts if part.update.averages is not None]
        if not averages:
            raise ArgumentError(
                "there is no average of the weights: give the trainer ema=0.999, and fit it first."
            )
        for one in averages:
            one.swap()
        try:
            yield
        finally:
            for one in averages:
                one.swap()

    # What the loop runs.

    def build(self, batch: Any) -> None:
        """Find out what the step returns for such a batch (tensors or their specs), and make all variables."""
        if self._workings is not None:
            return
        with tf.init_scope():
            names = self._names_of(self.train_step, batch)
            self._workings = Workings(
                self.models,
                self.optimizers,
                self.options,
                self.replicas,
                loss_names=self._loss_names,
                log_names=names,
            )

    def run_train_step(self, batch: Any) -> dict[str, Any]:
        """In graph: one step on all replicas; the epoch's means so far."""
        self.build(batch)
        logs, made, rows = self.replicas.run(self._train_on_replica, batch)
        means = self._built().account(logs, made, rows)
        return {**means, **results_of(self.metrics)}

    def run_test_step(self, batch: Any) -> dict[str, Any]:
        """In graph: one step of a validation on all replicas; its means so far."""
        if self._test_means is None:
            with tf.init_scope():
                self._test_means = Means(self._names_of(self.test_step, batch))
        logs, rows = self.replicas.run(self._test_on_replica, batch)
        return {**self._test_means.add(logs, rows, tf.constant(True)), **results_of(self.metrics)}

    def _train_on_replica(self, batch: Any) -> Any:
        self._local.moment = moment = _Moment(*self.replicas.weight(batch))
        try:
            logs = self._over_replicas(
                {name: scalar(name, value) for name, value in self.train_step(batch).items()}
            )
        finally:
            self._local.moment = None
        return logs, moment.made, moment.rows

    def _test_on_replica(self, batch: Any) -> Any:
        self._local.moment = moment = _Moment(*self.replicas.weight(batch))
        try:
            logs = self._over_replicas(
                {name: scalar(name, value) for name, value in self.test_step(batch).items()}
            )
        finally:
            self._local.moment = None
        return logs, moment.rows

    def _names_of(self, step: Callable[[Any], Logs], batch: Any) -> list[str]:
        """The names in a step's logs, found by tracing it without updates; models without weights get them here."""
        specs = tf.nest.map_structure(lambda one: tf.TensorSpec(one.shape, one.dtype), batch)

        def returned(batch: Any) -> Any:
            return {name: scalar(name, value) for name, value in step(batch).items()}

        traced = tf.function(lambda batch: self.replicas.run(returned, batch), autograph=False)
        return list(traced.get_concrete_function(specs).structured_outputs)

    def _forward(self, step: Callable[..., Any] | None, batch: Any, *, training: bool) -> tuple[Any, Any]:
        assert step is not None
        keywords = {"training": training} if _takes_training(step) else {}
        losses, metrics = take_apart(step(self.model, batch, **keywords))
        if training:
            self._loss_names = list(losses)
        return losses, metrics

    def _total(self, losses: Logs) -> Any:
        if self._workings is None:
            return tf.add_n(list(losses.values()))
        return self._workings.balancing.total(losses)

    def _minimize_balanced(self, tape: Any, losses: Logs) -> tuple[Any, Logs]:
        """Weigh the losses by the norms of their gradients, over all replicas, and update."""
        balancing, moment, scaler = self._built().balancing, self._moment, self._part("model").update.scaler
        slopes = {name: self.gradients(tape, loss) for name, loss in losses.items()}
        norms = {}
        for name, listed in slopes.items():
            whole = self.replicas.add([dense(one) * moment.share for one in listed if one is not None])
            norm = tf.linalg.global_norm(whole)
            norms[name] = norm if scaler is None else norm / scaler.scale
        weights = balancing.weights(norms)
        mixed = [_weighted(column, weights.values()) for column in zip(*slopes.values(), strict=True)]
        total = tf.add_n([weights[name] * loss for name, loss in losses.items()])
        self.apply(mixed, total)
        self.replicas.once(
            lambda merged: balancing.remember({n: self.replicas.first(v) for n, v in merged.items()}), norms
        )
        return total, weights

    def _over_replicas(self, values: Logs) -> dict[str, Any]:
        """Means over the rows of all replicas."""
        if not self.replicas.distributed:
            return dict(values)
        share = self._moment.share
        parts = [tf.where(share > 0, value * share, 0.0) for value in values.values()]
        return dict(zip(values, self.replicas.add(parts), strict=True))

    @property
    def _tracing(self) -> bool:
        """Whether updates are being traced; else the step only shows what it returns."""
        return self._workings is not None and getattr(self._local, "moment", None) is not None

    @property
    def _moment(self) -> _Moment:
        return self._local.moment  # type: ignore[no-any-return]

    def _built(self) -> Workings:
        if self._workings is None:
            raise ArgumentError("the trainer has not seen a batch yet: call fit, or build(batch).")
        return self._workings

    def _part(self, name: str) -> Part:
        parts = self._built().parts
        if name not in parts:
            raise ArgumentError(f"there is no part {name!r}: the trainer has {', '.join(map(repr, parts))}.")
        return parts[name]

    def _check(self) -> None:
        if set(self.models) != set(self.optimizers):
            raise ArgumentError(
                f"models {sorted(self.models)}, optimizers {sorted(self.optimizers)}: give one for each."
            )
        overridden = type(self).train_step is not Trainer.train_step
        if self._step is None and not overridden:
            raise ArgumentError("give a step(model, batch) that returns the loss, or override train_step.")
        if self._step is not None and (overridden or len(self.models) > 1):
            raise ArgumentError("a step function serves one model: for several, override train_step instead.")
        if overridden and self.options.losses is not None:
            raise ArgumentError(
                "losses= weighs what a step function returns: with an own train_step, weigh them there."
            )


def _takes_training(step: Callable[..., Any] | None) -> bool:
    return step is not None and "training" in inspect.signature(step).parameters


def _all(losses: Logs, total: Any) -> Logs:
    return {"loss": total, **(losses if len(losses) > 1 else {})}


def _weighted(column: Sequence[Any], weights: Iterable[Any]) -> Any:
    terms = [dense(one) * weight for one, weight in zip(column, weights, strict=True) if one is not None]
    return tf.add_n(terms) if terms else None
