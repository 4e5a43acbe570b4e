"""Rows on the device: batches are slices of them, or gathered in the order of the pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

import keras
import numpy as np
import tensorflow as tf

from stoker.tf_internals.types import Array, Nest, Tensor
from stoker.train.execution.batch_function import InnerShapes
from stoker.train.execution.feed import BatchFeed, FeedPosition


def order_of(rows: int, batch: int, shuffle: bool | str, seed: int, epoch: int) -> Array:
    """Return the order of the rows in a pass: a full shuffle made from (seed, epoch) alone, or one within batches."""
    random = np.random.Generator(np.random.Philox(key=[seed & (2**64 - 1), epoch]))
    order: Array = np.arange(rows)
    if shuffle != "batch":
        random.shuffle(order)
        return order
    full = rows // batch * batch
    order[:full] = random.permuted(order[:full].reshape(-1, batch), axis=1).reshape(-1)
    order[full:] = random.permutation(order[full:])
    return order


class Resident(BatchFeed):
    """All rows on the device: slices in order, or gathered by the permutation of the pass.

    The compiled loop takes a fixed number of rows in batches of one size, as XLA needs. With `any_rows` it takes any:
    the number of rows, the size of a batch and dimensions that were found to differ are left open in the trace.
    """

    kind = "resident"

    def __init__(
        self,
        data: Nest,
        batch_size: int,
        *,
        shuffle: bool | str = False,
        seed: int = 0,
        any_rows: bool = False,
    ) -> None:
        self.data = data
        self.rows = row_count(data)
        self.batch_size = min(batch_size, self.rows)
        # Not all batches have the requested length; this includes a single batch that is shorter.
        self._uneven = self.rows % batch_size != 0
        self.shuffle = shuffle
        self.seed = seed
        self.any_rows = any_rows
        self.steps: int | None = math.ceil(self.rows / self.batch_size)
        self._inner = tuple(tuple(leaf.shape[1:]) for leaf in keras.tree.flatten(data) if leaf is not None)
        self._epoch = 0
        self._order = tf.zeros([0], tf.int32)

    def fix_row_count(self) -> Resident:
        """Return the same rows, with their number and the batch size fixed in the trace."""
        these = Resident(self.data, self.batch_size, shuffle=self.shuffle, seed=self.seed)
        these._uneven = self._uneven
        return these

    @property
    def full_steps(self) -> int:
        return self.rows // self.batch_size

    def begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        if self.shuffle:
            order = order_of(self.rows, self.batch_size, self.shuffle, self.seed, epoch)
            self._order = tf.constant(order, tf.int32 if self.rows < 2**31 else tf.int64)

    def operands(self) -> Nest:
        size = (tf.constant(self.batch_size),) if self.any_rows else ()
        return (self.data, self._order, *size)

    def operand_specs(self) -> Nest:
        if not self.any_rows:
            return None
        leaves = iter(self._inner)
        data = map_leaves(lambda leaf: tf.TensorSpec([None, *next(leaves)], leaf.dtype), self.data)
        return (data, tf.TensorSpec([None], self._order.dtype), tf.TensorSpec([], tf.int32))

    def batch(self, operands: Nest, index: tf.Tensor, *, whole: bool = True) -> Nest:
        size = operands[2] if self.any_rows else self.batch_size
        start = index * size
        if self.any_rows:
            size = tf.minimum(size, _count_rows_in_graph(operands[0]) - start)
        elif not whole and self._uneven:
            size = tf.minimum(size, self.rows - start)
        return self._rows_from(operands, start, size)

    def tail(self, operands: Nest) -> Nest:
        start = self.full_steps * self.batch_size
        return self._rows_from(operands, start, self.rows - start)

    def _rows_from(self, operands: Nest, start: Tensor | int, count: Tensor | int) -> Nest:
        data, order = operands[:2]
        if self.shuffle:
            chosen = tf.slice(order, [start], [count])
            return map_leaves(lambda leaf: tf.gather(leaf, chosen), data)
        if self.any_rows:
            return map_leaves(lambda leaf: leaf[start : start + count], data)
        return map_leaves(
            lambda leaf: tf.slice(leaf, [start] + [0] * (leaf.shape.rank - 1), [count, *leaf.shape[1:]]), data
        )

    def spec(self) -> Nest:
        # As in Keras: one trace for all batches, of unknown length if the last one is shorter. Code that looks at the
        # static length (the weights of each output's mean loss) sees what it sees in Keras.
        count = None if self._uneven or self.any_rows else self.batch_size
        leaves = iter(self._inner)
        return map_leaves(lambda leaf: tf.TensorSpec([count, *next(leaves)], leaf.dtype), self.data)

    def signature(self) -> Hashable:
        leaves = keras.tree.flatten(self.data)
        structure = repr(keras.tree.map_structure(lambda _: 0, self.data))
        if self.any_rows:
            kinds = tuple(None if leaf is None else (leaf.dtype.name, len(leaf.shape)) for leaf in leaves)
            return ("any rows", structure, kinds, bool(self.shuffle))
        shapes = tuple(None if leaf is None else (tuple(leaf.shape), leaf.dtype.name) for leaf in leaves)
        shorter = ("shorter",) if self._uneven and self.rows == self.batch_size else ()
        return ("resident", structure, shapes, self.batch_size, bool(self.shuffle), *shorter)

    @property
    def shapes(self) -> InnerShapes | None:
        return self._inner if self.any_rows else None

    def widen(self, shapes: InnerShapes) -> None:
        self._inner = tuple(
            tuple(mine if mine == other else None for mine, other in zip(own, known, strict=True))
            for own, known in zip(self._inner, shapes, strict=True)
        )

    def position(self) -> FeedPosition:
        return {"epoch": self._epoch, "seed": self.seed}

    def seek(self, position: FeedPosition, blob: bytes | None = None) -> None:
        self.seed = int(position["seed"])
        self.begin_epoch(int(position["epoch"]))

    def reseed(self, salt: int) -> None:
        self.seed += salt
        self.begin_epoch(self._epoch)


def map_leaves(function: Callable[..., Nest], data: Nest) -> Nest:
    """Apply a function to each leaf of a structure; None stays None."""
    return keras.tree.map_structure(lambda leaf: None if leaf is None else function(leaf), data)


def _count_rows_in_graph(data: Nest) -> Tensor:
    """In the graph, count the rows."""
    return tf.shape(next(leaf for leaf in keras.tree.flatten(data) if leaf is not None))[0]


def row_count(data: Nest) -> int:
    return int(next(leaf.shape[0] for leaf in keras.tree.flatten(data) if leaf is not None))
