"""Streams: pipelines of tf.data, distributed datasets, and rows in host memory that are sent batch by batch."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator

import numpy as np
import tensorflow as tf

from stoker.tf_internals.distribution import replica_specs
from stoker.tf_internals.iterators import resource
from stoker.tf_internals.types import Array, Data, Dataset, DatasetIterator, Nest, Tensor
from stoker.train.execution.feed import (
    BatchFeed,
    FeedPosition,
    host_random_state,
    replace_optionals,
    restore_host_random_state,
)
from stoker.train.execution.feeding import iterator_state
from stoker.train.execution.feeding.resident import map_leaves, order_of, row_count

_PLACE = "stoker/iterators to let go"


def hand_over(iterator: DatasetIterator) -> None:
    """Hand an exhausted iterator over to TensorFlow alone; the caller then drops its own references.

    When the last reference to an iterator goes, TensorFlow waits for the thread that tunes its pipeline, commonly for a
    tenth of a second, and holds Python's lock all the time. So the iterator is moved to where only TensorFlow holds it,
    and a thread asks TensorFlow to drop it, which does not hold the lock. The iterator of a distributed dataset
    consists of several iterators and a strategy: it goes with its last reference.
    """
    if isinstance(iterator, tf.distribute.DistributedIterator):
        return
    with tf.device("CPU"):
        tf.raw_ops.Stage(values=[resource(iterator)], shared_name=_PLACE)


def let_go() -> None:
    """Drop the iterators that were handed over, in the background."""
    threading.Thread(target=_drop, name="stoker-release").start()


def _drop() -> None:
    with tf.device("CPU"):
        tf.raw_ops.StageClear(dtypes=[tf.resource], shared_name=_PLACE)


class Streamed(BatchFeed):
    """Batches through a `tf.data` iterator, made ahead while the device works."""

    kind = "streamed"

    def __init__(self, dataset: tf.data.Dataset, steps: int | None = None) -> None:
        self.dataset = dataset
        self.steps = steps
        self._epoch = 0
        self._iterator: DatasetIterator = None
        self._random = host_random_state()

    @property
    def iterator(self) -> DatasetIterator:
        """The iterator of the pass, for callers that save its place."""
        return self._iterator

    def begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._random = host_random_state()
        begun = self._iterator is not None
        if begun:
            hand_over(self._iterator)
        self._iterator = iter(self.dataset)
        if begun:
            let_go()

    def close(self) -> None:
        """Release the iterator and its prefetched batches after the last pass."""
        if self._iterator is not None:
            hand_over(self._iterator)
            self._iterator = None
            let_go()

    def operands(self) -> DatasetIterator:
        return self._iterator

    def batch(self, operands: Nest, index: tf.Tensor, *, whole: bool = True) -> Nest:
        return replace_optionals(operands.get_next())

    def spec(self) -> Nest:
        return replace_optionals(self.dataset.element_spec)

    def signature(self) -> Hashable:
        return ("streamed", repr(self.dataset.element_spec), not self.is_counted)

    def position(self) -> FeedPosition:
        version = iterator_state.order_version(self.dataset)
        return {"epoch": self._epoch, "random": self._random, "order_version": version}

    def seek(self, position: FeedPosition, blob: bytes | None = None) -> None:
        iterator_state.check_order_version(self.dataset, position.get("order_version"))
        # A seeded shuffle depends on how many iterators were made before this one.
        iterator_state.skip_epochs(self.dataset, int(position["epoch"]))
        if blob is None:
            # A generator that draws from Python's or NumPy's generator begins the pass as it did before.
            restore_host_random_state(position["random"])
        self.begin_epoch(int(position["epoch"]))
        taken = int(position["taken"])
        if blob is None:
            iterator_state.replay(self._iterator, taken)
        elif self.steps is None or taken < self.steps:
            iterator_state.restore_or_replay(self._iterator, blob, taken)
        else:
            # The pass is over and leaves behind only the seeds that it used up.
            iterator_state.replay(self._iterator, 1)


class _Order:
    """The rows of a pass in order. This is separate from the feed because TensorFlow never releases a generator."""

    def __init__(self, rows: int, batch_size: int) -> None:
        self.rows: Array = np.arange(rows)
        self.first = 0
        self._batch_size = batch_size

    def batches(self) -> Iterator[Array]:
        """Yield the batches from number `first` on."""
        for start in range(self.first * self._batch_size, len(self.rows), self._batch_size):
            yield self.rows[start : start + self._batch_size]


class StreamedRows(Streamed):
    """Rows that stay in host memory. They are gathered batch by batch in the order of the pass and sent ahead."""

    def __init__(self, data: Nest, batch_size: int, *, shuffle: bool | str = False, seed: int = 0) -> None:
        with tf.device("CPU"):
            self.data = map_leaves(tf.convert_to_tensor, data)
        self.rows = row_count(self.data)
        self.batch_size = min(batch_size, self.rows)
        self.shuffle = shuffle
        self.seed = seed
        self._order = _Order(self.rows, self.batch_size)
        super().__init__(self._pipeline(), math.ceil(self.rows / self.batch_size))

    def _pipeline(self) -> tf.data.Dataset:
        # The order arrives as elements, so that one pipeline serves all passes.
        batches = tf.data.Dataset.from_generator(
            self._order.batches, output_signature=tf.TensorSpec([None], tf.int64)
        )
        data = self.data
        dataset = batches.map(
            lambda chosen: map_leaves(lambda leaf: tf.gather(leaf, chosen), data),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        return dataset.prefetch(tf.data.AUTOTUNE)

    def begin_epoch(self, epoch: int) -> None:
        self._begin(epoch, 0)

    def _begin(self, epoch: int, first: int) -> None:
        self._order.first = first
        if self.shuffle:
            self._order.rows = order_of(self.rows, self.batch_size, self.shuffle, self.seed, epoch)
        super().begin_epoch(epoch)

    def position(self) -> FeedPosition:
        return {"epoch": self._epoch, "seed": self.seed}

    def seek(self, position: FeedPosition, blob: bytes | None = None) -> None:
        self.seed = int(position["seed"])
        self._begin(int(position["epoch"]), int(position["taken"]))

    def reseed(self, salt: int) -> None:
        self.seed += salt


class Distributed(Streamed):
    """The batches of a dataset that a strategy has distributed already.

    `strategy.experimental_distribute_dataset` and `strategy.distribute_datasets_from_function` make them. With one
    replica their batches are plain tensors; with several, every leaf of a batch holds one tensor for each replica.

    TensorFlow may count the batches of one replica instead of those of all. So `steps` is only the number that Keras
    shows, and the true number is known when the data runs out.
    """

    @property
    def is_counted(self) -> bool:
        return False


def is_distributed(x: Data) -> bool:
    """Return whether a strategy has distributed the dataset."""
    return isinstance(x, tf.distribute.DistributedDataset)


def replicas_of(dataset: Dataset) -> int:
    """Return the number of replicas for which a distributed dataset has batches."""
    return max(len(replica_parts(leaf)) for leaf in tf.nest.flatten(dataset.element_spec))


def global_batch_size(dataset: Dataset) -> int | None:
    """Return the rows in a batch of all replicas together; None if not known beforehand."""
    sizes = [part.shape[0] for part in replica_parts(tf.nest.flatten(dataset.element_spec)[0])]
    return None if None in sizes else sum(sizes)


def replica_parts(leaf: Tensor) -> list[Nest]:
    """Return each replica's part of a leaf of a batch, or of its spec; the leaf itself if it is not distributed."""
    specs = replica_specs(leaf)
    if specs is not None:
        return specs
    return list(leaf.values) if isinstance(leaf, tf.distribute.DistributedValues) else [leaf]


def take_first_part(batch: Nest) -> Nest:
    """Return the batch (or its spec) as the first replica sees it."""
    return tf.nest.map_structure(lambda leaf: replica_parts(leaf)[0], batch)


def is_divided(batch: Nest) -> bool:
    """Return whether a batch keeps the rows of each replica apart."""
    return any(isinstance(leaf, tf.distribute.DistributedValues) for leaf in tf.nest.flatten(batch))
