"""One step of a trainer: traced on a replica, run on all of them, its results kept in variables.

A step is traced twice. The first time shows what it returns and gives models without weights their weights; then the
variables of all pieces of the update are made; the second time the updates are traced too.
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
from stoker.train.custom.parts import Options, Part, common_strategy
from stoker.train.custom.state import UpdateState, results_of
from stoker.train.update.clipping import dense
from stoker.train.update.means import Means, scalar, take_apart
from stoker.train.update.replicas import Replicas
from stoker.train.update.watching import Trouble

Logs = Mapping[str, Any]


@dataclass
class _Moment:
    """What is known while one step is traced on one replica."""

    rows: Any
    share: Any
    # For each update made in the step: its part, its loss over all replicas, and what is wrong with it.
    made: list[dict[str, tuple[Any, Any]]] = field(default_factory=list)


class TracedSteps:
    """The inside of a trainer: what makes its `train_step` and `test_step` steps of a loop."""

    callback_model: Any
    """What callbacks see: the model, or several as one."""

    def __init__(
        self,
        models: dict[str, Any],
        optimizers: dict[str, Any],
        options: Options,
        metrics: Sequence[keras.metrics.Metric],
        seed: int,
    ) -> None:
        self.models = models
        self.optimizers = optimizers
        self.options = options
        self.metrics = list(metrics)
        self.random = keras.random.SeedGenerator(seed)
        self.replicas = Replicas(common_strategy(models))
        # Compiled loops know by this whose step they hold, without keeping the trainer alive.
        self.identity = object()
        self._loss_names: list[str] = []
        self._update_state: UpdateState | None = None
        self._test_means: Means | None = None
        # Replicas are traced in threads of their own, one step at a time each.
        self._local = threading.local()

    @property
    def model(self) -> Any:
        """The model, or the dict of models."""
        return next(iter(self.models.values())) if len(self.models) == 1 else self.models

    @property
    def update_state(self) -> UpdateState:
        """Everything that is kept beside models and optimizers."""
        if self._update_state is None:
            raise ArgumentError("the trainer has not seen a batch yet: call fit, or build(batch).")
        return self._update_state

    def train_step(self, batch: Any) -> Logs:
        raise NotImplementedError

    def test_step(self, batch: Any) -> Logs:
        raise NotImplementedError

    def build(self, batch: Any) -> None:
        """Find out what the step returns for such a batch (tensors or their specs), and make all variables."""
        if self._update_state is not None:
            return
        # Not inside the scope below: it stops gradient tapes from recording.
        names = self._names_of(self.train_step, batch)
        with tf.init_scope():
            self._update_state = UpdateState(
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
        logs, made, rows = self.replicas.run(lambda part: self._on_replica(self.train_step, part), batch)
        return {**self.update_state.account(logs, made, rows), **results_of(self.metrics)}

    def run_test_step(self, batch: Any) -> dict[str, Any]:
        """In graph: one step of a validation on all replicas; its means so far."""
        if self._test_means is None:
            names = self._names_of(self.test_step, batch)
            with tf.init_scope():
                self._test_means = Means(names)
        logs, _, rows = self.replicas.run(lambda part: self._on_replica(self.test_step, part), batch)
        return {**self._test_means.add(logs, rows), **results_of(self.metrics)}

    def apply(self, gradients: Sequence[Any], loss: Any, part: str) -> None:
        """Update a part's weights by gradients that `gradients` gave, changed as you like."""
        if not self._updating:
            return
        moment, found = self._moment, self._part(part)
        whole = self._over_replicas({"loss": scalar("loss", loss)})["loss"]
        scaler, watched = found.update.scaler, self.options.watched
        trouble = found.watch.judge(whole) if watched else tf.constant(Trouble.NONE, tf.float32)
        if scaler is not None:
            # An overflow: the scale goes down. Only when it is at its lowest is the loss itself to blame.
            overflow = (trouble == Trouble.NOT_FINITE) & scaler.may_shrink
            trouble = tf.where(overflow, tf.constant(Trouble.NONE, tf.float32), trouble)
        allowed = tf.logical_not(self.update_state.halt.on) & (trouble == Trouble.NONE)
        finite = found.update.apply(gradients, rows=moment.rows, share=moment.share, allowed=allowed)
        if watched and scaler is None:
            broken = tf.logical_not(finite) & (trouble == Trouble.NONE)
            trouble = tf.where(broken, tf.constant(Trouble.GRADIENT, tf.float32), trouble)
        moment.made.append({part: (whole, trouble)})

    def gradients(self, tape: tf.GradientTape, loss: Any, part: str) -> list[Any]:
        """The gradients of a loss for a part's variables, multiplied by the loss scale if there is one."""
        if not self._updating:
            return []
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

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Inside, the models have their averaged weights: to evaluate, predict, save or export them."""
        parts = list(self.update_state.parts.values())
        averages = [part.update.averages for part in parts if part.update.averages is not None]
        if not averages:
            raise ArgumentError("there is no average of the weights: give the trainer ema=0.999.")
        for one in averages:
            one.swap()
        try:
            yield
        finally:
            for one in averages:
                one.swap()

    def reset_training_means(self) -> None:
        """On the host: a new epoch."""
        if self._update_state is not None:
            self._update_state.means.reset()
        self._reset_metrics()

    def reset_test_means(self) -> None:
        """On the host: a new validation."""
        if self._test_means is not None:
            self._test_means.reset()
        self._reset_metrics()

    def _reset_metrics(self) -> None:
        for metric in self.metrics:
            metric.reset_state()

    def flush(self) -> None:
        """On the host: write what accumulation still holds."""
        self.update_state.flush()

    @property
    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside models and optimizers."""
        found = {**self.update_state.variables, "random": self.random.state}
        for number, metric in enumerate(self.metrics):
            found.update({f"metric/{number}/{i}": one for i, one in enumerate(metric.variables)})
        return found

    def _on_replica(self, step: Callable[[Any], Logs], batch: Any) -> Any:
        self._local.moment = moment = _Moment(*self.replicas.weight(batch))
        try:
            logs = self._over_replicas({name: scalar(name, value) for name, value in step(batch).items()})
        finally:
            self._local.moment = None
        return logs, moment.made, moment.rows

    def _names_of(self, step: Callable[[Any], Logs], batch: Any) -> list[str]:
        """The names in a step's logs, found by tracing it without updates."""
        specs = tf.nest.map_structure(lambda one: tf.TensorSpec(one.shape, one.dtype), batch)

        def returned(batch: Any) -> Any:
            return {name: scalar(name, value) for name, value in step(batch).items()}

        traced = tf.function(lambda batch: self.replicas.run(returned, batch), autograph=False)
        return list(traced.get_concrete_function(specs).structured_outputs)

    def _forward(self, step: Callable[..., Any], batch: Any, *, training: bool) -> tuple[Any, Any]:
        keywords = {"training": training} if takes_training(step) else {}
        losses, metrics = take_apart(step(self.model, batch, **keywords))
        if training:
            self._loss_names = list(losses)
        return losses, metrics

    def _total(self, losses: Logs) -> Any:
        if self._update_state is None:
            return tf.add_n(list(losses.values()))
        return self._update_state.balancing.total(losses)

    def _minimize_balanced(self, tape: Any, losses: Logs, part: str) -> tuple[Any, Logs]:
        """Weigh the losses by the norms of their gradients, over all replicas, and update."""
        balancing, share, first = self.update_state.balancing, self._moment.share, self.replicas.first
        scaler = self._part(part).update.scaler
        slopes = {name: self.gradients(tape, loss, part) for name, loss in losses.items()}
        norms = {}
        for name, listed in slopes.items():
            whole = self.replicas.add([dense(one) * share for one in listed if one is not None])
            norm = tf.linalg.global_norm(whole)
            norms[name] = norm if scaler is None else norm / scaler.scale
        weights = balancing.weights(norms)
        mixed = [_weighted(column, weights.values()) for column in zip(*slopes.values(), strict=True)]
        total = tf.add_n([weights[name] * loss for name, loss in losses.items()])
        self.apply(mixed, total, part)
        self.replicas.once(lambda all_: balancing.remember({n: first(v) for n, v in all_.items()}), norms)
        return total, weights

    def _over_replicas(self, values: Logs) -> dict[str, Any]:
        """Means over the rows of all replicas."""
        if not self.replicas.distributed:
            return dict(values)
        share = self._moment.share
        parts = [tf.where(share > 0, value * share, 0.0) for value in values.values()]
        return dict(zip(values, self.replicas.add(parts), strict=True))

    @property
    def _updating(self) -> bool:
        """Whether updates are being traced; else the step only shows what it returns."""
        return self._update_state is not None and getattr(self._local, "moment", None) is not None

    @property
    def _moment(self) -> _Moment:
        return self._local.moment  # type: ignore[no-any-return]

    def _part(self, name: str) -> Part:
        parts = self.update_state.parts
        if name not in parts:
            raise ArgumentError(f"there is no part {name!r}: the trainer has {', '.join(map(repr, parts))}.")
        return parts[name]


def takes_training(step: Callable[..., Any] | None) -> bool:
    """Whether a user's step wants to know if it is for training."""
    return step is not None and "training" in inspect.signature(step).parameters


def with_sum(losses: Logs, total: Any) -> dict[str, Any]:
    """Losses as logs show them: the sum, and the single ones if there are several."""
    return {"loss": total, **(losses if len(losses) > 1 else {})}


def _weighted(column: Sequence[Any], weights: Iterable[Any]) -> Any:
    terms = [dense(one) * weight for one, weight in zip(column, weights, strict=True) if one is not None]
    return tf.add_n(terms) if terms else None
