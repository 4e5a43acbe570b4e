"""Statistics of the columns over the training rows: means, variances, counts of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.data.array_types import Array, Integers, Mask
from stoker.data.store import Store

if TYPE_CHECKING:
    # This imports pyarrow, which a model without a table does not need.
    from stoker.data.columns import Column

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Moments:
    """The count, mean and variance of a column of numbers.

    `base` is a whole number near the mean, and `mean` is relative to it: subtracting the base first keeps large whole
    numbers and dates exact.
    """

    count: int
    base: int
    mean: float
    variance: float


def moments(store: Store, columns: list[Column], mask: Mask | None) -> dict[str, Moments]:
    """Return the moments of all columns of numbers, over the rows where the mask is true; None stands for all rows."""
    found: dict[str, Moments] = {}
    for dtype, names in places(columns).items():
        if dtype != "int32":
            found |= _compute_group(store.array(dtype), names, mask)
    return found


def places(columns: list[Column]) -> dict[str, list[str]]:
    """Return the names of the columns in each array of the store, from left to right."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        if column.dtype:
            groups.setdefault(column.dtype, []).append(column.name)
    return groups


def _compute_group(array: Array, names: list[str], mask: Mask | None) -> dict[str, Moments]:
    whole = array.dtype.kind == "i"
    base = _choose_base(array, mask)
    count = np.zeros(len(names))
    mean = np.zeros(len(names))
    squares = np.zeros(len(names))
    for first in range(0, len(array), _CHUNK):
        chunk = array[first : first + _CHUNK]
        if mask is not None:
            chunk = chunk[mask[first : first + _CHUNK]]
        if not len(chunk):
            continue
        apart = (chunk - base).astype(np.float64) if whole else chunk.astype(np.float64) - base
        there = np.isfinite(apart)
        here = there.sum(axis=0)
        apart = np.where(there, apart, 0.0)
        own = apart.sum(axis=0) / np.maximum(here, 1)
        distance = np.where(there, apart - own, 0.0)
        both = count + here
        delta = own - mean
        # Combine two parts as Chan, Golub and LeVeque do, so that no large sums of squares are subtracted.
        squares += np.einsum("ij,ij->j", distance, distance) + delta**2 * count * here / np.maximum(both, 1)
        mean += delta * here / np.maximum(both, 1)
        count = both
    variance = squares / np.maximum(count, 1)
    return {
        name: Moments(int(count[i]), int(base[i]), float(mean[i]), float(variance[i]))
        for i, name in enumerate(names)
    }


def _choose_base(array: Array, mask: Mask | None) -> Integers:
    """Return a whole number near the values of each column: the first one, rounded."""
    first = array[int(np.argmax(mask))] if mask is not None else array[0]
    if array.dtype.kind == "i":
        return np.asarray(first)
    inside = np.isfinite(first) & (np.abs(first) < 2**53)
    return np.round(np.where(inside, first, 0)).astype(np.int64)


def counts(store: Store, columns: list[Column], mask: Mask | None) -> dict[str, Integers]:
    """Return how many times each value of each category occurs; the first count is that of missing values."""
    names = places(columns).get("int32", [])
    if not names:
        return {}
    codes = store.array("int32")
    sizes = [len(store.meta["values"].get(name, ())) + 1 for name in names]
    totals = [np.zeros(size, np.int64) for size in sizes]
    for first in range(0, len(codes), _CHUNK):
        chunk = codes[first : first + _CHUNK]
        if mask is not None:
            chunk = chunk[mask[first : first + _CHUNK]]
        for index, size in enumerate(sizes):
            totals[index] += np.bincount(chunk[:, index] + 1, minlength=size)
    return dict(zip(names, totals, strict=True))
