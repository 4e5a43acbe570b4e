"""Gradient accumulation: several small batches make the update of one large batch.

Every batch counts with its rows, so that the last, shorter batch of an epoch is worth what it holds; what is left at
the end of an epoch makes an update of its own. The result is that of the large batch, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from stoker.tf_internals.types import Tensor, Variable


class Accumulation:
    """The gradients since the last update, added up, and over how many rows."""

    def __init__(self, batches: int, variables: Sequence[Variable]) -> None:
        self._batches = batches
        self._sums = [tf.Variable(tf.zeros(one.shape, one.dtype), trainable=False) for one in variables]
        self._rows = tf.Variable(0.0, trainable=False)
        self._count = tf.Variable(0, trainable=False, dtype=tf.int64)

    @property
    def variables(self) -> dict[str, Variable]:
        return {
            **{f"accumulation/{number}": total for number, total in enumerate(self._sums)},
            "accumulation/rows": self._rows,
            "accumulation/count": self._count,
        }

    def add(self, gradients: Sequence[Tensor], rows: Tensor) -> None:
        """Take in the mean gradient of a batch of so many rows; None where a variable takes no part."""
        for total, gradient in zip(self._sums, gradients, strict=True):
            if gradient is not None:
                total.assign_add(gradient * tf.cast(rows, gradient.dtype))
        self._rows.assign_add(rows)

    def turn(self) -> Tensor:
        """Count a batch, good or left out; whether it was the last of its round."""
        last = self._count + 1 >= self._batches
        self._count.assign(tf.where(last, tf.zeros_like(self._count), self._count + 1))
        return last

    @property
    def pending(self) -> Tensor:
        """Whether anything waits for an update."""
        return self._rows > 0

    def take(self) -> list[Tensor]:
        """The mean gradient of all rows taken in; the sums start over."""
        # Identities, because the variables are cleared before the means are used.
        rows = tf.identity(self._rows)
        means = [tf.identity(total) / tf.cast(rows, total.dtype) for total in self._sums]
        with tf.control_dependencies(means):
            for total in self._sums:
                total.assign(tf.zeros_like(total))
            self._rows.assign(0.0)
            self._count.assign(0)
        return means
