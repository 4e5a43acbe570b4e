"""The state of a step's variables, taken before a trial and put back after it, bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf

from stoker.tf_internals.types import Tensor


class Snapshot:
    """Copies of variables, on the device they live on."""

    def __init__(self, variables: Iterable[tf.Variable]) -> None:
        self.variables = list(variables)
        self.values = [tf.identity(variable.read_value()) for variable in self.variables]

    @classmethod
    def of_step(cls, concrete: tf.types.experimental.ConcreteFunction) -> Snapshot:
        """All that a traced step reads or writes: weights, optimizer, metrics, random seeds, whatever else."""
        return cls(concrete.graph.variables)

    def restore(self) -> None:
        """Put the copies back."""
        for variable, value in zip(self.variables, self.values, strict=True):
            variable.assign(value)

    def now(self) -> list[tf.Tensor]:
        """What the variables hold now."""
        return [tf.identity(variable.read_value()) for variable in self.variables]


def difference(start: Sequence[tf.Tensor], one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """How far two ends of the same steps lie apart, as a share of the way they went; inf if they disagree.

    Rounding makes single weights differ (an optimizer may turn a gradient of 1e-12 into a full step either way), so
    the measure is taken over all weights. Counters and seeds must agree exactly.
    """
    apart = 0.0
    way = 0.0
    for before, left, right in zip(start, one, other, strict=True):
        if not before.dtype.is_floating:
            if not bool(tf.reduce_all(tf.equal(left, right))):
                return float("inf")
            continue
        gap = tf.cast(left, tf.float64) - tf.cast(right, tf.float64)
        moved = tf.cast(left, tf.float64) - tf.cast(before, tf.float64)
        apart += float(tf.reduce_sum(gap * gap))
        way += float(tf.reduce_sum(moved * moved))
    if apart != apart or way != way:
        return float("inf")
    return float((apart / way) ** 0.5) if way else float(apart > 0)
