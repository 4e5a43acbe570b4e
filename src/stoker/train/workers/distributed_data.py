"""Datasets that a strategy has distributed already: where `fit` can train on them, and one line where it cannot."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Data
from stoker.train.execution.feeding.distributed import is_distributed, replicas_of
from stoker.train.execution.feeding.sources import validation_parts
from stoker.train.workers.group import Group


def check_distributed(x: Data, validation_data: Data, options: Mapping[str, object], group: Group) -> None:
    """Refuse what cannot be done with a distributed dataset.

    Args:
        x: the training data.
        validation_data: as `fit` takes it.
        options: by name, arguments of `fit` that need the pipeline itself; None where they were not given.
        group: the workers and replicas of the model's strategy.

    Raises:
        ArgumentError: the line says what to do instead.
    """
    held_out = None if validation_data is None else validation_parts(validation_data)[0]
    for name, data in (("x", x), ("validation_data", held_out)):
        if is_distributed(data):
            _check_replicas(name, replicas_of(data), group)
    given = [name for name, value in options.items() if value is not None]
    if is_distributed(x) and given:
        raise ArgumentError(
            f"{given[0]}= cannot be used with a distributed dataset: pass the tf.data.Dataset itself, "
            "stoker divides its batches among the replicas"
        )


def _check_replicas(name: str, replicas: int, group: Group) -> None:
    if not group.alone:
        raise ArgumentError(
            f"{name} is a distributed dataset, which a job of {group.count} workers cannot train on: pass the "
            "tf.data.Dataset itself, stoker divides its batches among the workers (divide=)"
        )
    if replicas > 1 and replicas != group.replicas:
        raise ArgumentError(
            f"{name} was distributed to {replicas} replicas, but the model has {group.replicas}: make model and "
            "dataset under the same strategy"
        )
