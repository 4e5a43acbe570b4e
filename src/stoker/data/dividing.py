"""Which rows are held out where that matters: whole groups, or the latest.

Rows drawn at random leak where rows belong together: of a customer with ten purchases some would be learned from, and
the others tested on; and whoever is to predict tomorrow must not be tested on yesterday.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.errors import ArgumentError
from stoker.units import counted


@dataclass(frozen=True)
class By:
    """What the rows are divided by.

    Attributes:
        how: "group": rows with the same value stay together; "time": the latest rows are held out.
        column: its name.
        values: of each row.
    """

    how: str
    column: str
    values: Any


def divided(rows: int, shares: Sequence[float], by: By | None, seed: int | None) -> list[Any]:
    """The numbers of the rows of each part: those to learn from, then a part for each share.

    Args:
        rows: how many there are.
        shares: of them, that are held out.
        by: what they are divided by; by chance or by their place, if None.
        seed: of what is drawn; None holds the last rows out.

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


def _random(seed: int) -> Any:
    """NumPy takes no negative seeds."""
    return np.random.default_rng(seed if seed >= 0 else seed % 2**64)


def _by_group(rows: int, shares: Sequence[float], by: By, seed: int) -> list[Any]:
    groups, codes, counts = np.unique(by.values, return_inverse=True, return_counts=True)
    if len(groups) <= len(shares):
        raise ArgumentError(
            f"rows cannot be divided by {by.column!r}: it has {counted(len(groups), 'group')}, and "
            f"{len(shares) + 1} parts need as many or more"
        )
    mixed = _random(seed).permutation(len(groups))
    parts: Any = np.empty(len(groups), int)
    parts[mixed] = _cut(counts[mixed], [share * rows for share in shares])
    return [np.flatnonzero(parts[codes] == one) for one in range(len(shares) + 1)]


def _cut(counts: Any, wanted: Sequence[float]) -> Any:
    """The part of each group in a row of groups: as many groups a part as come nearest to its share."""
    parts: Any = np.zeros(len(counts), int)
    first = 0
    for number, share in enumerate(wanted, 1):
        sizes = np.cumsum(counts[first:])
        # One group at least for each of the parts that follow, and for what is learned from.
        most = len(counts) - first - (len(wanted) - number) - 1
        count = 1 + int(np.argmin(np.abs(sizes[:most] - share)))
        parts[first : first + count] = number
        first += count
    return parts


def _by_time(rows: int, shares: Sequence[float], by: By) -> list[Any]:
    """From the earliest to the latest; rows of one time stay together."""
    order = np.argsort(by.values, kind="stable")
    times = by.values[order]
    first = rows - np.cumsum([share * rows for share in reversed(shares)])[::-1].round().astype(int)
    bounds = [int(np.searchsorted(times, times[min(max(one, 0), rows - 1)])) for one in first]
    parts = np.split(order, bounds)
    if not all(len(one) for one in parts):
        raise ArgumentError(
            f"rows cannot be divided by {by.column!r}: it has too few different times for {len(parts)} parts"
        )
    return parts
