"""One step of a trainer: traced on a replica, run on all of them, its results kept in variables.

A step is traced twice. The first time shows what it returns, and gives models without weights their weights. Then the
variables of all parts of the update are made. The second time traces the updates too.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.graphs import called_graphs
from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.types import Graph, Model, Nest, Optimizer, Tensor, TensorSpec, Variable
from stoker.train.custom.parts import UpdateOptions, UpdateState, common_strategy, results_of
from stoker.train.custom.updating import Logs, Moment, Updating
from stoker.train.execution.loop import MORE
from stoker.train.execution.parted_step import find_fixed_size
from stoker.train.execution.parts import PartSize
from stoker.train.update.means import RunningMeans, StepResult, scalar, take_apart
from stoker.train.update.replicas import Replicas, Statistics, Weight
from stoker.train.workers.copies import reset


class TracedSteps(Updating):
    """Turns a trainer's `train_step` and `test_step` into steps of a compiled loop."""

    callback_model: Model
    """What callbacks see: the model, or several as one."""
    apart: bool = False
    """Whether each worker reads different rows, instead of its share of a batch that all read."""

    def __init__(
        self,
        models: dict[str, Model],
        optimizers: dict[str, Optimizer],
        options: UpdateOptions,
        metrics: Sequence[keras.metrics.Metric],
        seed: int,
    ) -> None:
        super().__init__(options, Replicas(common_strategy(models)))
        self.models = models
        self.optimizers = optimizers
        self.metrics = list(metrics)
        self.random = keras.random.SeedGenerator(seed)
        # Compiled loops use these to identify whose step they hold, without keeping the trainer alive.
        self._identities: dict[Hashable, object] = {}
        self._loss_names: list[str] = []
        self._test_means: RunningMeans | None = None
        # Whether a traced step has collectives of its own; and, for trials, the size of its gradients.
        self._exchanges = False
        self._size: Tensor = None

    def identity(self, jit: str) -> object:
        """Return an object that identifies the step as it would be traced now."""
        return self._identities.setdefault((self.apart, self.replicas.rate_factor, jit), object())

    @property
    def exchanges_inside(self) -> str | None:
        """The reason why a replica's work cannot be separated from its collectives, or None; known after the trace."""
        if not self.updates_last or self.options.losses is not None:
            return "the step exchanges values with the other replicas before it ends"
        layers = [layer for model in self.models.values() for layer in layers_of(model)]
        if self._exchanges or any(getattr(layer, "synchronized", False) for layer in layers):
            return "a layer adds up over the replicas"
        return None

    @property
    def parts_refusal(self) -> str | None:
        """The reason why a batch cannot be cut into parts, or None."""
        layers = [layer for model in self.models.values() for layer in layers_of(model)]
        if self.replicas.distributed and any(getattr(layer, "synchronized", False) for layer in layers):
            return "a layer adds up over the replicas"
        return next(filter(None, map(find_fixed_size, self.models.values())), None)

    @property
    def model(self) -> Model:
        """The model, or the dict of models."""
        return next(iter(self.models.values())) if len(self.models) == 1 else self.models

    def train_step(self, batch: Nest) -> Logs:
        raise NotImplementedError

    def test_step(self, batch: Nest) -> Logs:
        raise NotImplementedError

    def build(self, batch: Nest) -> None:
        """Find out what the step returns for such a batch (tensors or their specs), and make all variables."""
        if self._update_state is not None:
            return
        self._check_metrics()
        # This must be outside the scope below, which stops gradient tapes from recording.
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

    def _check_metrics(self) -> None:
        for metric in self.metrics if self.replicas.distributed else ():
            if not all(isinstance(one.value, tf.distribute.DistributedValues) for one in metric.variables):
                raise ArgumentError(
                    f"the metric {metric.name!r} was made outside of strategy.scope(): make it inside, or each worker "
                    "counts for itself."
                )

    def run_train_step(
        self, batch: Nest, more: Tensor = None, *, compiled: bool = False, size: PartSize | None = None
    ) -> dict[str, Tensor]:
        """In the graph, run one step on all replicas; return the epoch's means so far.

        Args:
            batch: the batch of all replicas, or of this worker's replicas.
            more: for a stream of unknown length, whether it has another batch. The logs then say under `MORE` whether
                all workers' streams have one.
            compiled: whether XLA compiles what a replica does before its collective.
            size: the size of the parts in which a replica takes its rows; None for all rows at once.
        """
        self.build(batch)
        logs, made, rows, going = self.replicas.run(
            lambda part, weight: self._on_replica(part, weight, more, compiled=compiled, size=size),
            batch,
            apart=self.apart,
        )
        return {**self.update_state.account(logs, made, rows), **self._read_each_step(), **going}

    def run_alone(self, batch: Nest, *, compiled: bool) -> dict[str, Tensor]:
        """In the graph, for a trial, run what a replica runs alone; return the size of its gradients and loss."""
        self.build(batch)
        if self._size is None:
            with tf.init_scope():
                self._size = tf.Variable(0.0, trainable=False)

        def on_replica(part: Nest, weight: Weight) -> Any:
            self._local.moment = moment = Moment(weight, compiled)
            try:
                self.train_step(part)
                found = [one for waiting in moment.waiting for one in (*waiting.gradients, waiting.loss)]
            finally:
                self._local.moment = None
            return tf.add_n([tf.reduce_sum(tf.abs(tf.cast(one, tf.float32))) for one in found])

        size = self.replicas.run(on_replica, batch, apart=self.apart)
        # Trials compare two ways of computing a step by what each leaves in variables.
        self._size.assign_add(size)
        return {"size": size}

    def run_test_step(self, batch: Nest, more: Tensor = None) -> dict[str, Tensor]:
        """In the graph, run one validation step on all replicas; return its means so far. `more` is as in training."""
        if self._test_means is None:
            names = self._names_of(self.test_step, batch)
            with tf.init_scope():
                self._test_means = RunningMeans(names)
        logs, _, rows, going = self.replicas.run(
            lambda part, weight: self._on_replica(part, weight, more, testing=True), batch
        )
        return {**self._test_means.add(logs, rows), **self._read_each_step(), **going}

    def _read_each_step(self) -> dict[str, Tensor]:
        return {} if self.replicas.distributed else results_of(self.metrics)

    def results(self) -> dict[str, Tensor]:
        """In the graph, after a call's last step, return the metrics. Reading them adds them up over the replicas."""
        return results_of(self.metrics) if self.replicas.distributed else {}

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Give the models their averaged weights within the block, to evaluate, predict, save or export them."""
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
        """On the host, reset the means for a new epoch."""
        if self._update_state is not None:
            self._update_state.means.reset()
        self._reset_metrics()

    def reset_test_means(self) -> None:
        """On the host, reset the means for a new validation."""
        if self._test_means is not None:
            self._test_means.reset()
        self._reset_metrics()

    def _reset_metrics(self) -> None:
        if self.replicas.distributed:
            reset(self.metrics)
            return
        for metric in self.metrics:
            metric.reset_state()

    def flush(self) -> None:
        """On the host, apply the gradients that are still accumulated."""
        self.update_state.flush()

    @property
    def state(self) -> dict[str, Variable]:
        """The state that a checkpoint keeps besides models and optimizers."""
        found = {**self.update_state.variables, "random": self.random.state}
        for number, metric in enumerate(self.metrics):
            found.update({f"metric/{number}/{i}": one for i, one in enumerate(metric.variables)})
        return found

    def _on_replica(
        self,
        batch: Nest,
        weight: Weight,
        more: Tensor,
        *,
        testing: bool = False,
        compiled: bool = False,
        size: PartSize | None = None,
    ) -> Any:
        self._local.moment = moment = Moment(weight, compiled, size)
        statistics = None if testing else Statistics(self.models.values(), self.replicas)
        step = self.test_step if testing else self.train_step
        try:
            logs = {name: scalar(name, value) for name, value in step(batch).items()}
            self._exchanges |= not testing and holds_collectives(tf.compat.v1.get_default_graph())
            if size is not None and self._exchanges:
                # Replicas may have different numbers of parts.
                raise ArgumentError(
                    "parts: a layer adds up over the replicas, which must all do so the same number of times"
                )
            changes = [] if statistics is None else statistics.changes()
            means = self._together(moment.waiting, [*logs.values(), *changes], weight, more)
            values, gradients = iter(means.values), iter(means.weighed)
            losses = [next(values) for _ in moment.waiting]
            for waiting, loss in zip(moment.waiting, losses, strict=True):
                self._update(
                    waiting, [*itertools.islice(gradients, len(waiting.gradients)), loss], means.rows
                )
            shown = {name: next(values) for name in logs}
            if statistics is not None:
                statistics.write(list(values))
        finally:
            self._local.moment = None
        going = {} if more is None else {MORE: means.counts[0] == 0}
        return shown, moment.made, means.rows, going

    def _names_of(self, step: Callable[[Tensor], Logs], batch: Nest) -> list[str]:
        """Return the names in a step's logs, found by tracing the step without updates."""
        specs = tf.nest.map_structure(_spec_of, batch)

        def show_logs(batch: Nest, _: Weight) -> Any:
            return {name: scalar(name, value) for name, value in step(batch).items()}

        traced = tf.function(lambda batch: self.replicas.run(show_logs, batch), autograph=False)
        return list(traced.get_concrete_function(specs).structured_outputs)

    def _forward(
        self, step: Callable[..., StepResult], batch: Nest, *, training: bool
    ) -> tuple[Tensor, Tensor]:
        keywords = {"training": training} if takes_training(step) else {}
        losses, metrics = take_apart(step(self.model, batch, **keywords))
        if training:
            self._loss_names = list(losses)
        return losses, metrics

    def _total(self, losses: Logs) -> Tensor:
        if self._update_state is None:
            return tf.add_n(list(losses.values()))
        return self._update_state.balancing.total(losses)


def _spec_of(leaf: Tensor) -> TensorSpec:
    """Return the spec of a leaf of a batch. A leaf of a distributed dataset holds a tensor for each replica."""
    if isinstance(leaf, tf.distribute.DistributedValues):
        return tf.type_spec_from_value(leaf)
    return leaf if isinstance(leaf, tf.TypeSpec) else tf.TensorSpec(leaf.shape, leaf.dtype)


def holds_collectives(graph: Graph) -> bool:
    """Return whether workers exchange values in a graph, as traced so far, or in a function that it calls."""
    return any(
        op.type.startswith("Collective")
        for one in (graph, *called_graphs(graph))
        for op in one.get_operations()
    )


def takes_training(step: Callable[..., object] | None) -> bool:
    """Return whether a user's step takes an argument that says whether it is training."""
    return step is not None and "training" in inspect.signature(step).parameters


def add_sum(losses: Logs, total: Tensor) -> dict[str, Tensor]:
    """Return the losses as logs show them: the sum, and the single losses if there are several."""
    return {"loss": total, **(losses if len(losses) > 1 else {})}
