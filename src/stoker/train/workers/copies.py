"""Saves and restores variables of which a strategy keeps a copy on every device.

A mirrored variable has the same value everywhere: one value is saved, and all copies get it. A variable that is summed
when it is read (a metric's) has a part on each replica. Each part is saved under its replica's number, since parts that
were divided anew would sum to a differently rounded value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import keras
import tensorflow as tf

from stoker.tf_internals.types import Array, Metric, TensorLike, Variable


class Mirrored:
    """One value, kept on several devices."""

    def __init__(self, copies: Sequence[tf.Variable]) -> None:
        self._copies = list(copies)
        self.dtype, self.shape = copies[0].dtype, copies[0].shape

    def numpy(self) -> Array:
        """Return the value."""
        value: Array = self._copies[0].numpy()
        return value

    def assign(self, value: TensorLike) -> None:
        """Assign a value to every copy that this process holds."""
        for copy in self._copies:
            copy.assign(value)


class ReplicaPart(Mirrored):
    """One replica's part of a variable. Reading the variable adds up all parts."""

    def __init__(self, copy: tf.Variable) -> None:
        super().__init__([copy])


def copies_of(variable: Variable) -> list[Variable]:
    """Return this process's copies of a TensorFlow variable: the variable itself if no strategy made it."""
    return list(variable.values) if isinstance(variable, tf.distribute.DistributedValues) else [variable]


def has_parts(variable: Variable) -> bool:
    """Return whether each replica keeps its own part and reading adds the parts up."""
    return bool(
        isinstance(variable, tf.distribute.DistributedValues)
        and variable.synchronization == tf.VariableSynchronization.ON_READ
    )


def reset(metrics: Iterable[Metric]) -> None:
    """Reset metrics to zero, copy by copy.

    If a variable is assigned as a whole on the host, TensorFlow adds up all workers' parts each time, and leaves
    threads behind.
    """
    for metric in metrics:
        inner = list(getattr(metric, "metrics", ()))
        theirs = (
            type(metric).__module__.startswith("keras.")
            or type(metric).reset_state is keras.Metric.reset_state
        )
        if inner:
            reset(inner)
        elif not theirs:
            metric.reset_state()
        else:
            for variable in metric.variables:
                for copy in copies_of(variable.value):
                    copy.assign(tf.zeros_like(copy))


def part_name(name: str, replica: int) -> str:
    """Return the name under which a replica's part is saved. The first replica uses the name of a single device."""
    return name if replica == 0 else f"{name}@{replica}"


def whole_name(name: str) -> str:
    """Return the name of the variable that a part belongs to."""
    return name.partition("@")[0]
