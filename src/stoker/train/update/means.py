"""Takes apart the result of a step, and keeps the means over an epoch on the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Nest, Tensor, TensorLike, Variable

# The result of a user's step: a loss, a dict of losses, or one of these and a dict of metrics.
StepResult: TypeAlias = Nest


class RunningMeans:
    """The means of named scalars over the rows seen since `reset`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        # The sums and, last, the number of rows, in one variable, so that a step writes once.
        self._sums = tf.Variable(tf.zeros([len(self._names) + 1]), trainable=False)

    @property
    def variables(self) -> dict[str, Variable]:
        return {"means": self._sums}

    def add(
        self, values: Mapping[str, Tensor], rows: Tensor, counted: Tensor = True, halted: Tensor = None
    ) -> dict[str, Tensor]:
        """Add a step's values, if the step counts; return the means so far.

        Before the first step that counts, the means are 0; if training `halted` before it, they are NaN.
        """
        new = tf.stack([*(tf.cast(values[name], tf.float32) for name in self._names), tf.ones([])]) * rows
        if counted is not True:
            # Not a product with 0: the value that is left out may be NaN.
            new = tf.where(counted, new, tf.zeros_like(new))
        self._sums.assign_add(new)
        means = tf.math.divide_no_nan(self._sums[:-1], self._sums[-1])
        if halted is not None:
            means = tf.where(halted & (self._sums[-1] == 0), float("nan"), means)
        return dict(zip(self._names, tf.unstack(means), strict=True))

    def reset(self) -> None:
        """On the host, start again from zero."""
        self._sums.assign(tf.zeros_like(self._sums))


def take_apart(returned: StepResult) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the losses and the metrics in the result of a user's step (see `StepResult`)."""
    losses, metrics = returned if isinstance(returned, tuple) else (returned, {})
    if not isinstance(losses, Mapping):
        losses = {"loss": losses}
    if not losses or not isinstance(metrics, Mapping):
        raise ArgumentError(
            f"the step returned {returned!r}: return a loss, a dict of losses, or (losses, a dict of metrics)."
        )
    if len(losses) > 1 and "loss" in losses:
        raise ArgumentError(
            'the step returned several losses, one named "loss": that is the name of their sum.'
        )
    both = sorted({*losses, "loss"} & set(metrics))
    if both:
        raise ArgumentError(
            f"the step returned {', '.join(both)} as a loss and as a metric: rename the metric."
        )
    return {n: scalar(n, v) for n, v in losses.items()}, {n: scalar(n, v) for n, v in metrics.items()}


def scalar(name: str, value: TensorLike) -> Tensor:
    """Return a loss or metric as one float32 number: the mean, if there is a value for each row."""
    try:
        tensor = tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the step returned {name!r} = {value!r}, which is not a tensor.") from error
    tensor = tf.cast(tensor, tf.float32)
    return tensor if tensor.shape.rank == 0 else tf.reduce_mean(tensor)
