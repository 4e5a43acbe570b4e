"""Clipping gradients by value, by norm, and by global norm.

Clipping comes after the gradients of all replicas and of all accumulated batches were added: a norm is the norm of
the gradient that reaches the optimizer, so that two replicas clip as one device with the whole batch does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Optimizer, Tensor
from stoker.train.update.options import require_positive


@dataclass(frozen=True)
class Clip:
    """Limits for gradients, applied in this order.

    value: every element lies in [-value, value].
    norm: every variable's gradient has at most this L2 norm.
    global_norm: all gradients together have at most this L2 norm.
    """

    value: float | None = None
    norm: float | None = None
    global_norm: float | None = None

    def __post_init__(self) -> None:
        require_positive("Clip", value=self.value, norm=self.norm, global_norm=self.global_norm)
        if self.value is None and self.norm is None and self.global_norm is None:
            raise ArgumentError("Clip() limits nothing: give value=, norm= or global_norm=.")

    def __call__(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The clipped gradients."""
        factors = self.factors(gradients)
        return [self.limit(gradient, factor) for gradient, factor in zip(gradients, factors, strict=True)]

    def factors(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """For each gradient, the scalar by which `limit` shrinks it: the only part that needs all gradients."""
        squares = [tf.reduce_sum(tf.square(self._limit_value(gradient))) for gradient in gradients]
        factors = [tf.ones([], square.dtype) for square in squares]
        if self.norm is not None:
            factors = [_shrink(self.norm, tf.sqrt(square)) for square in squares]
        if self.global_norm is not None:
            parts = zip(squares, factors, strict=True)
            whole = tf.sqrt(tf.add_n([tf.cast(square * factor**2, tf.float32) for square, factor in parts]))
            common = _shrink(self.global_norm, whole)
            factors = [factor * tf.cast(common, factor.dtype) for factor in factors]
        return factors

    def limit(self, gradient: Tensor, factor: Tensor) -> Tensor:
        """One gradient, clipped."""
        limited = self._limit_value(gradient)
        return limited if self.norm is None and self.global_norm is None else limited * factor

    def _limit_value(self, gradient: Tensor) -> Tensor:
        return gradient if self.value is None else tf.clip_by_value(gradient, -self.value, self.value)


def _shrink(limit: float, norm: Tensor) -> Tensor:
    return limit / tf.maximum(norm, limit)


def clip_of(optimizer: Optimizer) -> Clip | None:
    """The limits a Keras optimizer was made with: the trainer applies them, after adding up the replicas."""
    value, norm, whole = optimizer.clipvalue, optimizer.clipnorm, optimizer.global_clipnorm
    return Clip(value, norm, whole) if value or norm or whole else None


def make_dense(gradient: Tensor) -> Tensor:
    """A gradient as a dense tensor: rows that occur several times in a lookup are added up before the norm is taken."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, gradient.dense_shape[0])
