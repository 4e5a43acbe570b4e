"""Clips gradients by value, by norm, and by global norm.

Clipping comes after adding up the gradients of all replicas and all accumulated batches. A norm is thus that of the
gradient that reaches the optimizer, and two replicas clip exactly as one device does with the whole batch.
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
        """Return the clipped gradients."""
        factors = self.factors(gradients)
        return [self.limit(gradient, factor) for gradient, factor in zip(gradients, factors, strict=True)]

    def factors(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Return, for each gradient, the scalar by which `limit` shrinks it. Only this part needs all gradients."""
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
        """Return one gradient, clipped."""
        limited = self._limit_value(gradient)
        return limited if self.norm is None and self.global_norm is None else limited * factor

    def _limit_value(self, gradient: Tensor) -> Tensor:
        return gradient if self.value is None else tf.clip_by_value(gradient, -self.value, self.value)


def _shrink(limit: float, norm: Tensor) -> Tensor:
    return limit / tf.maximum(norm, limit)


def clip_of(optimizer: Optimizer) -> Clip | None:
    """Return the limits of a Keras optimizer, which the trainer applies after adding up the replicas."""
    value, norm, whole = optimizer.clipvalue, optimizer.clipnorm, optimizer.global_clipnorm
    return Clip(value, norm, whole) if value or norm or whole else None


def make_dense(gradient: Tensor) -> Tensor:
    """Return a gradient as a dense tensor: rows that a lookup repeats are added up before the norm is taken."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, gradient.dense_shape[0])
