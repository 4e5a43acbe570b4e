"""Which rows to hold out: rows drawn at random, the last rows, whole groups, or the latest rows by time.

Rows drawn at random leak where rows belong together: a model would train on some purchases of a customer and be tested
on the others. And a model that is to predict tomorrow must not be tested on yesterday.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stoker.data.array_types import Array, Integers
from stoker.errors import ArgumentError
from stoker.units import counted


@dataclass(frozen=True)
class By:
    """The column that the rows are split by.

    Attributes:
        how: "group": rows with the same value stay together; "time": the latest rows are held out.
        column: its name.
        values: one for each row.
    """

    how: str
    column: str
    values: Array


def divide(rows: int, shares: Sequence[float], by: By | None, seed: int | None) -> list[Integers]:
    """The row numbers of each part: the training rows, then a held-out part for each share.

    Args:
        rows: how many there are.
        shares: the share of the rows in each held-out part.
        by: the column to split by; None splits at random, or by place.
        seed: of the random choice; None holds out the last rows.

    Raises:
        ArgumentError: there are too few rows, groups or times for so many parts.
    """
    if by is not None:
        return _by_time(rows, shares, by) if by.how == "time" else _by_group(rows, shares, by, seed or 0)
    order = np.arange(rows) if seed is None else _random(seed).permutation(rows)
    parts = np.split(order, rows - np.cumsum([round(share * rows) for share in reversed(shares)])[::-1])
    if not all(len(one) for one in parts):
        raise ArgumentError(f"validation_split={tuple(shares)!r} of {rows:,} rows leaves a part empty")
    return parts


def _random(seed: int) -> np.random.Generator:
    """A random generator; NumPy takes no negative seeds."""
    return np.random.default_rng(seed if seed >= 0 else seed % 2**64)


def _by_group(rows: int, shares: Sequence[float], by: By, seed: int) -> list[Integers]:
    groups, codes, counts = np.unique(by.values, return_inverse=True, return_counts=True)
    if len(groups) <= len(shares):
        raise ArgumentError(
            f"rows cannot be split by {by.column!r}: it has {counted(len(groups), 'group')}, and "
            f"{len(shares) + 1} parts need at least {len(shares) + 1}"
        )
    mixed = _random(seed).permutation(len(groups))
    parts = np.empty(len(groups), int)
    parts[mixed] = _cut(counts[mixed], [share * rows for share in shares])
    return [np.flatnonzero(parts[codes] == one) for one in range(len(shares) + 1)]


def _cut(counts: Integers, wanted: Sequence[float]) -> Integers:
    """The part of each group: every part takes as many groups in turn as come nearest to its share."""
    parts = np.zeros(len(counts), int)
    first = 0
    for number, share in enumerate(wanted, 1):
        sizes = np.cumsum(counts[first:])
        # At least one group must be left for each of the next parts, and one for training.
        most = len(counts) - first - (len(wanted) - number) - 1
        count = 1 + int(np.argmin(np.abs(sizes[:most] - share)))
        parts[first : first + count] = number
        first += count
    return parts


def _by_time(rows: int, shares: Sequence[float], by: By) -> list[Integers]:
    """The parts from the earliest to the latest; rows with the same time stay together."""
    order = np.argsort(by.values, kind="stable")
    times = by.values[order]
    first = rows - np.cumsum([share * rows for share in reversed(shares)])[::-1].round().astype(int)
    bounds = [int(np.searchsorted(times, times[min(max(one, 0), rows - 1)])) for one in first]
    parts = np.split(order, bounds)
    if not all(len(one) for one in parts):
        raise ArgumentError(
            f"rows cannot be split by {by.column!r}: it has too few different times for {len(parts)} parts"
        )
    return parts
