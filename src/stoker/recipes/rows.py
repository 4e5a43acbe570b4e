"""Rows of a dataset as arrays in memory, for training baselines and measuring scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stoker.data.array_types import Array
from stoker.data.features import Feature
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Dataset

# How many rows a bundle records as examples.
_EXAMPLES = 5
# An array, or a dict of arrays by column.
Inputs: TypeAlias = Any


@dataclass(frozen=True)
class Rows:
    """Rows as inputs and labels.

    Attributes:
        inputs: an array, or a dict of arrays by column.
        labels: the index of each row's class, or a number.
    """

    inputs: Inputs
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)

    def join(self, others: Rows) -> Rows:
        """Return these rows, and the others after them."""
        inputs = _map_inputs(lambda one, other: np.concatenate([one, other]), self.inputs, others.inputs)
        return Rows(inputs, np.concatenate([self.labels, others.labels]))

    def sample(self, count: int) -> Rows:
        """Return this many of the rows, evenly spread; all if there are fewer."""
        if count >= len(self):
            return self
        chosen = np.linspace(0, len(self) - 1, count).astype(int)
        return Rows(_map_inputs(lambda one: one[chosen], self.inputs), self.labels[chosen])

    def shuffle_column(self, column: str, order: Array) -> Rows:
        """Return the same rows with the values of one column in another order."""
        return Rows({**self.inputs, column: self.inputs[column][order]}, self.labels)


def _map_inputs(change: Callable[..., Array], *inputs: Inputs) -> Inputs:
    """Change the array, or the arrays of each column."""
    if not isinstance(inputs[0], Mapping):
        return change(*inputs)
    return {name: change(*(one[name] for one in inputs)) for name in inputs[0]}


def rows_of(dataset: Dataset, most: int | None = None) -> Rows:
    """Return the first rows of a dataset of `(inputs, labels)`, in its order.

    Raises:
        ArgumentError: the dataset has no rows.
    """
    inputs: list[Inputs] = []
    labels: list[Array] = []
    count = 0
    for some, wanted in dataset.as_numpy_iterator():
        inputs.append(some)
        labels.append(wanted)
        count += len(wanted)
        if most is not None and count >= most:
            break
    if not inputs:
        raise ArgumentError("a part of the data is smaller than one batch: use a smaller batch size")
    if isinstance(inputs[0], Mapping):
        joined: Inputs = {name: _join_rows([one[name] for one in inputs], most) for name in inputs[0]}
    else:
        joined = _join_rows(inputs, most)
    return Rows(joined, _join_rows(labels, most))


def example_rows(dataset: Dataset, rows: Rows) -> Inputs:
    """Return a few of the rows, from the least label to the largest, as a bundle takes them: categories as text."""
    order = np.argsort(rows.labels, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(_EXAMPLES, len(order))).astype(int)]
    # Put the middle one first, as the most usual row.
    chosen = np.roll(chosen, -(len(chosen) // 2))
    if not isinstance(rows.inputs, Mapping):
        some = rows.inputs[chosen]
        return {"text": some} if some.dtype == object else some
    return {name: _decode_category(dataset.features[name], one[chosen]) for name, one in rows.inputs.items()}


def _decode_category(feature: Feature, values: Array) -> Array:
    if feature.kind != "category" or values.dtype == object:
        return values
    # The first word stands for a missing value.
    words = np.array([None, *(feature.vocabulary or ())[1:]], dtype=object)
    return words[values]


def _join_rows(parts: list[Array], most: int | None) -> Array:
    whole = np.concatenate(parts)
    return whole if most is None else whole[:most]


def balanced_weights(labels: Array, classes: int) -> dict[int, float]:
    """Return a weight for each class that makes all classes count the same; a class without rows has weight 1."""
    counts = np.bincount(labels, minlength=classes)
    present = int((counts > 0).sum())
    return {
        index: float(len(labels) / (present * count)) if count else 1.0 for index, count in enumerate(counts)
    }


def weighted(dataset: Dataset, weights: Mapping[int, float] | None) -> Dataset:
    """Add the weights of the classes to a dataset of `(inputs, labels)`, so that losses compare with training."""
    if weights is None:
        return dataset
    import tensorflow as tf

    table = [weights[index] for index in sorted(weights)]
    return dataset.map(
        lambda inputs, labels: (inputs, labels, tf.gather(tf.constant(table), labels)),
        num_parallel_calls=tf.data.AUTOTUNE,
    )


def count_repeated(rows: Rows, among: Rows) -> int:
    """Count how many of these rows, with their labels, are also among the others."""
    seen = set(_keys(among))
    return sum(key in seen for key in _keys(rows))


def _keys(rows: Rows) -> Iterator[tuple[object, ...]]:
    if isinstance(rows.inputs, Mapping):
        columns = [_list_comparable(rows.inputs[name]) for name in sorted(rows.inputs)]
    elif rows.inputs.ndim == 1:
        columns = [rows.inputs.tolist()]
    else:
        columns = [[one.tobytes() for one in rows.inputs]]
    return zip(*columns, rows.labels.tolist(), strict=True)


def _list_comparable(column: Array) -> list[object]:
    """Return values that compare as equal; NaN, which never does, becomes None."""
    if column.dtype.kind == "f":
        return [None if value != value else value for value in column.tolist()]
    values: list[object] = column.tolist()
    return values
