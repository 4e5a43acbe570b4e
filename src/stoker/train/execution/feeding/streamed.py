"""Streams: pipelines of tf.data, and rows in host memory that are sent batch by batch."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator

import numpy as np
import tensorflow as tf

from stoker.tf_internals.types import Array, DatasetIterator, Nest
from stoker.train.execution.batch_function import InnerShapes
from stoker.train.execution.feed import (
    FeedPosition,
    host_random_state,
    restore_host_random_state,
    without_optionals,
)
from stoker.train.execution.feeding import iterator_state, release
from stoker.train.execution.feeding.resident import map_leaves, order_of, row_count


class Streamed:
    """Batches through a `tf.data` iterator, made ahead while the device works."""

    kind = "streamed"

    def __init__(self, dataset: tf.data.Dataset, steps: int | None = None) -> None:
        self.dataset = dataset
        self.steps = steps
        self._epoch = 0
        self._iterator: DatasetIterator = None
        self._random = host_random_state()

    @property
    def full_steps(self) -> int | None:
        return self.steps

    @property
    def counted(self) -> bool:
        return self.steps is not None

    @property
    def iterator(self) -> DatasetIterator:
        """The pass' iterator, for those who save its place."""
        return self._iterator

    def begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._random = host_random_state()
        begun = self._iterator is not None
        if begun:
            release.hand_over(self._iterator)
        self._iterator = iter(self.dataset)
        if begun:
            release.let_go()

    def close(self) -> None:
        """The last pass is over: let go of its iterator, and of the batches made ahead."""
        if self._iterator is not None:
            release.hand_over(self._iterator)
            self._iterator = None
            release.let_go()

    def operands(self) -> DatasetIterator:
        return self._iterator

    def operand_specs(self) -> Nest:
        return None

    @property
    def shapes(self) -> InnerShapes | None:
        return None

    def widen(self, shapes: InnerShapes) -> None:
        raise AssertionError("a stream has the shapes of its dataset")

    def batch(self, operands: Nest, index: tf.Tensor, *, whole: bool = True) -> Nest:
        return without_optionals(operands.get_next())

    def tail(self, operands: Nest) -> Nest:
        raise AssertionError("a stream has no batch of its own shape")

    def spec(self) -> Nest:
        return without_optionals(self.dataset.element_spec)

    def signature(self) -> Hashable:
        return ("streamed", repr(self.dataset.element_spec), not self.counted)

    def position(self) -> FeedPosition:
        version = iterator_state.order_version(self.dataset)
        return {"epoch": self._epoch, "random": self._random, "order_version": version}

    def seek(self, position: FeedPosition, blob: bytes | None = None) -> None:
        iterator_state.check_order_version(self.dataset, position.get("order_version"))
        # A seeded shuffle goes by how many iterators were made before this one.
        iterator_state.skip_epochs(self.dataset, int(position["epoch"]))
        if blob is None:
            # A generator that draws from Python's or NumPy's generator begins the pass as it did then.
            restore_host_random_state(position["random"])
        self.begin_epoch(int(position["epoch"]))
        taken = int(position["taken"])
        if blob is None:
            iterator_state.replay(self._iterator, taken)
        elif self.steps is None or taken < self.steps:
            iterator_state.restore_or_replay(self._iterator, blob, taken)
        else:
            # The pass is over: all it leaves behind are the seeds it has used up.
            iterator_state.replay(self._iterator, 1)

    def reseed(self, salt: int) -> None:
        """The user's pipeline has its own order."""


class _Order:
    """The rows of a pass in their order. Apart from the feed, because TensorFlow never lets go of a generator."""

    def __init__(self, rows: int, batch_size: int) -> None:
        self.rows: Array = np.arange(rows)
        self.first = 0
        self._batch_size = batch_size

    def batches(self) -> Iterator[Array]:
        """From batch number `first` on."""
        for start in range(self.first * self._batch_size, len(self.rows), self._batch_size):
            yield self.rows[start : start + self._batch_size]


class StreamedRows(Streamed):
    """Rows that stay in host memory, gathered batch by batch in the order of the pass and sent ahead."""

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
        # The order comes in as elements, so that one pipeline serves all passes.
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
