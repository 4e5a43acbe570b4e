"""A step of the user's own, its losses, metrics and gradients added up over the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from stoker.tf_internals.types import Model, Nest, Tensor
from stoker.train.custom.updating import Logs
from stoker.train.execution.parts import Computed, PartSize, add_up, own_floats

# Takes a tape to record on and some rows; gives losses, metrics and the total of the losses, as means over these rows.
Forward = Callable[[tf.GradientTape, Nest], tuple[Logs, Logs, Tensor]]


class StepInParts(NamedTuple):
    """What a step computes of a batch."""

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
    """In graph: what a step computes, as means over the batch.

    Args:
        batch: of a replica.
        size: that of a part.
        forward: the step.
        find_slopes: takes a tape and a part's share of the total; gives the gradients to be added up.
        models: whose own state a step may move.
        compiled: whether XLA compiles what is computed of a part.
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
