"""Rows of a dataset as arrays in memory: what baselines learn from, and what scores are measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.errors import ArgumentError


@dataclass(frozen=True)
class Rows:
    """Inputs and labels.

    Attributes:
        inputs: an array, or a dict of arrays by column.
        labels: of each row: the index of its class, or a number.
    """

    inputs: Any
    labels: Any

    def __len__(self) -> int:
        return len(self.labels)

    def shuffled(self, column: str, order: Any) -> Rows:
        """The same rows with the values of one column given to other rows."""
        return Rows({**self.inputs, column: self.inputs[column][order]}, self.labels)


def rows_of(dataset: Any, most: int | None = None) -> Rows:
    """The first rows of a dataset of `(inputs, labels)`, in its order.

    Raises:
        ArgumentError: it has none.
    """
    inputs: list[Any] = []
    labels: list[Any] = []
    count = 0
    for some, wanted in dataset.as_numpy_iterator():
        inputs.append(some)
        labels.append(wanted)
        count += len(wanted)
        if most is not None and count >= most:
            break
    if not inputs:
        raise ArgumentError("part of the data is smaller than one batch: use a smaller batch size")
    if isinstance(inputs[0], Mapping):
        joined: Any = {name: _joined([one[name] for one in inputs], most) for name in inputs[0]}
    else:
        joined = _joined(inputs, most)
    return Rows(joined, _joined(labels, most))


def _joined(parts: list[Any], most: int | None) -> Any:
    whole = np.concatenate(parts)
    return whole if most is None else whole[:most]


def balanced_weights(labels: Any, classes: int) -> dict[int, float]:
    """A weight for each class that makes all classes count alike; a class without a row has none."""
    counts = np.bincount(labels, minlength=classes)
    present = int((counts > 0).sum())
    return {
        index: float(len(labels) / (present * count)) if count else 1.0 for index, count in enumerate(counts)
    }


def weighted(dataset: Any, weights: Mapping[int, float] | None) -> Any:
    """A dataset of `(inputs, labels)`, with the weights of the labels' classes: losses on it are those of training."""
    if weights is None:
        return dataset
    import tensorflow as tf

    table = [weights[index] for index in sorted(weights)]
    return dataset.map(
        lambda inputs, labels: (inputs, labels, tf.gather(tf.constant(table), labels)),
        num_parallel_calls=tf.data.AUTOTUNE,
    )


def repeated(rows: Rows, among: Rows) -> int:
    """How many of these rows are, with their label, also among those."""
    seen = set(_keys(among))
    return sum(key in seen for key in _keys(rows))


def _keys(rows: Rows) -> Iterator[tuple[Any, ...]]:
    if isinstance(rows.inputs, Mapping):
        columns = [_plain(rows.inputs[name]) for name in sorted(rows.inputs)]
    elif rows.inputs.ndim == 1:
        columns = [rows.inputs.tolist()]
    else:
        columns = [[one.tobytes() for one in rows.inputs]]
    return zip(*columns, rows.labels.tolist(), strict=True)


def _plain(column: Any) -> list[Any]:
    """Values that are equal where the column's are: NaN is not, so it is taken for a missing value."""
    if column.dtype.kind == "f":
        return [None if value != value else value for value in column.tolist()]
    values: list[Any] = column.tolist()
    return values
