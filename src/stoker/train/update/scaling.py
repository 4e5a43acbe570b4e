"""Dynamic loss scaling for float16: it keeps small gradients from vanishing, and an overflow costs one step.

The loss is multiplied by a scale before the gradient is taken, and the gradient is divided by it after the replicas
were added up. The sum contains every replica's infinities, so all replicas see them and all skip the step; the scale is
halved. After `patience` good steps in a row it is doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.types import Model, Optimizer, Tensor, Variable
from stoker.train.update.options import require_positive


@dataclass(frozen=True)
class LossScale:
    """How the loss scale changes: it starts at `initial` and is multiplied by `factor` after `patience` good steps.

    If a gradient overflows, the step is skipped and the scale divided by `factor`, down to `lowest`.
    """

    initial: float = 2.0**15
    patience: int = 2000
    factor: float = 2.0
    lowest: float = 1.0

    def __post_init__(self) -> None:
        require_positive("LossScale", initial=self.initial, patience=self.patience, lowest=self.lowest)
        if self.factor <= 1:
            raise ArgumentError(f"LossScale(factor={self.factor!r}): it must be above 1.")


class LossScaler:
    """The scale, and for how long it has been good."""

    def __init__(self, options: LossScale) -> None:
        self._options = options
        self.scale = tf.Variable(options.initial, trainable=False, name="loss_scale", dtype=tf.float32)
        self._good = tf.Variable(0, trainable=False, name="loss_scale_good", dtype=tf.int64)

    @property
    def variables(self) -> dict[str, Variable]:
        return {"loss_scale/scale": self.scale, "loss_scale/good": self._good}

    @property
    def may_shrink(self) -> Tensor:
        """Whether the scale can still be lowered, so that it may be the cause of an overflow."""
        return self.scale > self._options.lowest

    def move(self, finite: Tensor) -> None:
        """Double, keep or halve the scale after a step."""
        good = tf.where(finite, self._good + 1, 0)
        full = good >= self._options.patience
        grown = tf.where(full, self.scale * self._options.factor, self.scale)
        shrunk = tf.maximum(self.scale / self._options.factor, self._options.lowest)
        # A scale that itself overflows would make every gradient zero, so it stays as it is.
        grown = tf.where(tf.math.is_finite(grown), grown, self.scale)
        self.scale.assign(tf.where(finite, grown, shrunk))
        self._good.assign(tf.where(full, tf.zeros_like(good), good))


class KerasLossScaler(LossScaler):
    """The scale of Keras' `LossScaleOptimizer`, in its variables and by its rules, over all replicas."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._options = LossScale(optimizer.initial_scale, optimizer.dynamic_growth_steps, lowest=2.0**-126)
        self.scale, self._good = optimizer.dynamic_scale.value, optimizer.step_counter.value

    @property
    def variables(self) -> dict[str, Variable]:
        """Empty: the optimizer holds the variables."""
        return {}


def all_finite(values: Sequence[Tensor]) -> Tensor:
    """Return whether all elements are finite.

    A single one that is not makes the sum NaN or infinite, and sums are cheap.
    """
    return tf.math.is_finite(tf.add_n([tf.cast(tf.reduce_sum(value), tf.float32) for value in values]))


def computes_in_float16(model: Model) -> bool:
    """Return whether a layer of a Keras model computes in float16 and so needs loss scaling."""
    return any(layer.compute_dtype == "float16" for layer in layers_of(model))
