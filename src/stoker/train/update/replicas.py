"""One step on several devices: every replica takes its share of the batch, and all write the same update.

`run` runs the part of a step that belongs to a replica. In it, `add` sums values over the replicas, and `once` leaves
the replicas to write; there, `each` changes a variable on every device. Without a strategy, all of these are plain
calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from stoker.tf_internals.keras_layers import layers_of, own_state
from stoker.tf_internals.types import Model, Nest, Strategy, Tensor, Variable
from stoker.train.execution.feeding.streamed import is_divided
from stoker.train.workers.group import Group, group_of, sum_over_replicas
from stoker.train.workers.tracing import on_replica


@dataclass(frozen=True)
class Weight:
    """The weight of a replica in the means of a step.

    own: its share of the batch; or its number of rows, if it cannot know that of the others.
    rows: the rows of all replicas' batches together; None if only the sum tells.
    """

    own: Tensor
    rows: Tensor


class ReplicaMeans(NamedTuple):
    """The result of `Replicas.means`."""

    values: list[Tensor]
    weighed: list[Tensor]
    rows: Tensor
    counts: list[Tensor]


class Replicas:
    """The replicas of a tf.distribute strategy, or the one device if there is no strategy."""

    def __init__(self, strategy: Strategy) -> None:
        with strategy.scope():
            self.distributed = bool(tf.distribute.has_strategy())
        self.strategy = strategy
        self.count = int(strategy.num_replicas_in_sync)
        self.group: Group = group_of(strategy)
        # The factor on all rates, if one is asked for. It is a constant of the traced step, not part of its state.
        self.rate_factor = 1.0

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Make variables within the block with a copy on every device."""
        with self.strategy.scope():
            yield

    def run(self, step: Callable[[Any, Weight], Any], batch: Nest, *, apart: bool = False) -> Any:
        """Run a step on every replica with its share of the batch. The result is the same on all replicas.

        Args:
            step: takes the replica's share and how much it counts.
            batch: the batch of all workers or, if `apart`, of this one alone; or one with each replica's rows apart, as
                in a distributed dataset.
            apart: whether each worker reads different rows.
        """
        if not self.distributed:
            return step(batch, Weight(tf.ones([]), _rows(batch)))
        function = self._on_part if is_divided(batch) else self._on_replica
        results = self.strategy.run(function, args=(step, batch, apart))
        return tf.nest.map_structure(self.first, results)

    def _on_replica(self, step: Callable[[Any, Weight], Any], batch: Nest, apart: bool) -> Any:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        with on_replica(number):
            here = self.count // self.group.count
            # Each worker's own rows are divided among its devices; a batch that all workers read is divided among all
            # replicas.
            part = _share(batch, number % here, here) if apart else _share(batch, number, self.count)
            if apart:
                return step(part, Weight(_rows(part), None))
            rows = _rows(batch)
            return step(part, Weight(_rows(part) / rows, rows))

    def _on_part(self, step: Callable[[Any, Weight], Any], part: Nest, _apart: bool) -> Any:
        with on_replica(tf.distribute.get_replica_context().replica_id_in_sync_group):
            return step(part, Weight(_rows(part), None))

    def means(
        self,
        values: Sequence[Tensor],
        weight: Weight,
        *,
        weighed: Sequence[Tensor] = (),
        counts: Sequence[Tensor] = (),
    ) -> ReplicaMeans:
        """Return means over the rows of all replicas, in one collective if the values are small.

        Args:
            values: means over this replica's rows.
            weight: how much this replica counts.
            weighed: values that are already multiplied by that weight.
            counts: values that are added up but not divided.
        """
        if not self.distributed:
            return ReplicaMeans(list(values), list(weighed), weight.rows, list(counts))
        # The mean of a replica without rows is NaN, so it takes no part.
        own = [
            tf.where(weight.own > 0, one * tf.cast(weight.own, one.dtype), tf.zeros_like(one))
            for one in values
        ]
        own += [tf.where(weight.own > 0, one, tf.zeros_like(one)) for one in weighed]
        asked = [] if weight.rows is not None else [weight.own]
        sums = self.add([*own, *counts, *asked])
        found, counted, rows = sums[: len(own)], sums[len(own) : len(own) + len(counts)], weight.rows
        if rows is None:
            rows = sums[-1]
            found = [one / tf.cast(rows, one.dtype) for one in found]
        return ReplicaMeans(found[: len(values)], found[len(values) :], rows, counted)

    def add(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Return the sum of each value over the replicas, on every replica.

        Small values are packed into one collective.
        """
        return sum_over_replicas(values) if self.distributed else list(values)

    def once(self, write: Callable[..., None], *arguments: Nest) -> None:
        """Leave the replica context and write. The replicas' tensors arrive as one value."""
        if not self.distributed:
            write(*arguments)
            return
        context = tf.distribute.get_replica_context()
        context.merge_call(lambda _, *merged: write(*merged), args=arguments)

    def each(self, variable: Variable, change: Callable[..., object], *arguments: Nest) -> None:
        """Change a variable on every device, each with its own copy of the arguments."""
        self.strategy.extended.update(variable, change, args=arguments, group=False)

    def first(self, value: Nest) -> Nest:
        """Return the first replica's copy of a value that all replicas have."""
        return self.strategy.experimental_local_results(value)[0] if self.distributed else value


def _share(batch: Nest, number: Tensor, count: int) -> Nest:
    rows = row_count(batch)
    start, stop = rows * number // count, rows * (number + 1) // count
    return tf.nest.map_structure(lambda leaf: None if leaf is None else leaf[start:stop], batch)


def _rows(batch: Nest) -> Tensor:
    return tf.cast(row_count(batch), tf.float32)


def row_count(batch: Nest) -> Tensor:
    """Return the number of rows in a batch: the leading dimension of its first tensor."""
    return tf.shape(next(leaf for leaf in tf.nest.flatten(batch) if leaf is not None))[0]


class Statistics:
    """The variables that a step's forward pass writes itself, such as BatchNorm's moving statistics, over all replicas.

    Make this object before the forward pass on a replica. Each replica moves its copy by the rows it saw. All copies
    then get the mean of these moves over all rows, so workers stay equal bit for bit, and a mean moves as it would on
    one device with the whole batch. (A variance is that within each replica's rows;
    `BatchNormalization(synchronized=True)` takes it over all of them, at the cost of more collectives.)
    """

    def __init__(self, models: Iterable[Model], replicas: Replicas) -> None:
        self._replicas = replicas
        self._variables = _own_state(models) if replicas.distributed else []
        self._before = [tf.identity(variable) for variable in self._variables]

    def changes(self) -> list[Tensor]:
        """Return how far this replica's copies have moved."""
        # A difference, so that an untouched variable stays exactly as it is.
        pairs = zip(self._variables, self._before, strict=True)
        return [tf.convert_to_tensor(variable) - before for variable, before in pairs]

    def write(self, changes: Sequence[Tensor]) -> None:
        """Move all copies by the mean over the replicas."""
        if not self._variables:
            return
        values = [before + change for before, change in zip(self._before, changes, strict=True)]

        def assign_all_copies(values: Sequence[Tensor]) -> None:
            for variable, value in zip(self._variables, values, strict=True):
                self._replicas.each(variable, lambda copy, new: copy.assign(new), value)

        self._replicas.once(assign_all_copies, values)


def _own_state(models: Iterable[Model]) -> list[Variable]:
    """Return the floating-point variables that layers created as not trainable, which excludes a frozen kernel."""
    found: dict[int, Tensor] = {}
    for model in models:
        for layer in layers_of(model):
            for variable in own_state(layer):
                inner = variable.value
                if inner.dtype.is_floating and isinstance(inner, tf.distribute.DistributedValues):
                    found[id(inner)] = inner
    return list(found.values())
