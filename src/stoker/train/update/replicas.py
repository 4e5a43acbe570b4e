"""One step on several devices: every replica takes its share of the batch, and all write the same update.

What a step does on a replica runs in `run`; there `add` sums values over the replicas, and `once` leaves the replicas
for the writing, where `each` changes a variable on every device. Without a strategy all of these are plain calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf


class Replicas:
    """The replicas of a tf.distribute strategy, or the one device without."""

    def __init__(self, strategy: Any) -> None:
        with strategy.scope():
            self.distributed = bool(tf.distribute.has_strategy())
        self.strategy = strategy
        self.count = int(strategy.num_replicas_in_sync)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Where variables that every device holds a copy of are made."""
        with self.strategy.scope():
            yield

    def run(self, step: Callable[[Any], Any], batch: Any) -> Any:
        """Run a step on every replica with its share of the batch; what it returns is the same on all."""
        if not self.distributed:
            return step(batch)
        results = self.strategy.run(lambda whole: step(self._share(whole)), args=(batch,))
        return tf.nest.map_structure(self.first, results)

    def weight(self, batch: Any) -> tuple[Any, Any]:
        """The rows of the whole batch, and this replica's part of them."""
        rows = tf.cast(row_count(batch), tf.float32)
        if not self.distributed:
            return rows, tf.ones([])
        whole = self.add([rows])[0]
        return whole, rows / whole

    def add(self, values: Sequence[Any]) -> list[Any]:
        """The sum of each value over the replicas, on every replica."""
        if not self.distributed:
            return list(values)
        context = tf.distribute.get_replica_context()
        return list(context.all_reduce(tf.distribute.ReduceOp.SUM, list(values)))

    def once(self, write: Callable[..., None], *arguments: Any) -> None:
        """Leave the replicas and write: each replica's own tensor arrives as one value of all."""
        if not self.distributed:
            write(*arguments)
            return
        context = tf.distribute.get_replica_context()
        context.merge_call(lambda _, *merged: write(*merged), args=arguments)

    def each(self, variable: Any, change: Callable[..., Any], *arguments: Any) -> None:
        """Change a variable on every device, each with its own copy of the arguments."""
        self.strategy.extended.update(variable, change, args=arguments, group=False)

    def first(self, value: Any) -> Any:
        """The first replica's copy of a value that all have."""
        return self.strategy.experimental_local_results(value)[0] if self.distributed else value

    def _share(self, batch: Any) -> Any:
        index = tf.distribute.get_replica_context().replica_id_in_sync_group
        rows = row_count(batch)
        start, stop = rows * index // self.count, rows * (index + 1) // self.count
        return tf.nest.map_structure(lambda leaf: leaf[start:stop], batch)


def row_count(batch: Any) -> Any:
    """How many rows a batch has: the leading dimension of its first tensor."""
    return tf.shape(tf.nest.flatten(batch)[0])[0]
