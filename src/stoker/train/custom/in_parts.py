"""A step of the user's own whose losses, metrics and gradients are added up over the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from stoker.tf_internals.types import Model, Nest, Tensor
from stoker.train.custom.updating import Logs
from stoker.train.execution.parts import Computed, PartSize, add_up, own_floats

# Takes a tape to record on and some rows; returns the losses, the metrics and the total loss, as means over these rows.
Forward = Callable[[tf.GradientTape, Nest], tuple[Logs, Logs, Tensor]]


class StepInParts(NamedTuple):
    """The result of a step for a batch."""

    losses: Logs
    metrics: Logs
    total: Tensor
    gradients: list[Any]


def add_up_step(
    batch: Nest,
    size: PartSize,
    forward: Forward,
    find_slopes: Callable[[tf.GradientTape, Tensor], list[Any]],
    models: Iterable[Model],
    *,
    compiled: bool,
) -> StepInParts:
    """In the graph, return the result of a step, as means over the batch.

    Args:
        batch: the batch of a replica.
        size: the size of a part.
        forward: the step.
        find_slopes: takes a tape and a part's share of the total; returns the gradients to add up.
        models: the models whose own state a step may change.
        compiled: whether XLA compiles the computation of a part.
    """
    names: list[tuple[list[str], list[str]]] = []

    def compute(rows: Nest, share: Tensor, _: Tensor) -> Computed:
        tape = tf.GradientTape()
        losses, metrics, total = forward(tape, rows)
        with tape:
            own = total * share
        names.append((list(losses), list(metrics)))
        shown = [one * share for one in (*losses.values(), *metrics.values())]
        return Computed([own, *shown, *find_slopes(tape, own)])

    total, *rest = add_up(batch, size, compute, state=own_floats(models), compiled=compiled).added
    values = iter(rest)
    losses, metrics = ({name: next(values) for name in one} for one in names[-1])
    return StepInParts(losses, metrics, total, list(values))
