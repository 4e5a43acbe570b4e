"""Whether what was counted is what chance would give."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np


def assert_even(counts: Any, freedom: int | None = None) -> None:
    """A chi-square test: fair draws fail it once in a million times.

    Args:
        counts: how often each of some equally likely things came.
        freedom: how many of the counts are free; None for all but one.
    """
    counts = np.asarray(counts, float).ravel()
    mean = counts.mean()
    assert mean >= 3, "too few draws for a chi-square test"
    statistic = float(((counts - mean) ** 2 / mean).sum())
    freedom = counts.size - 1 if freedom is None else freedom
    # Wilson and Hilferty: the cube root is nearly normal.
    part = 2 / (9 * freedom)
    limit = freedom * (1 - part + NormalDist().inv_cdf(1 - 1e-6) * math.sqrt(part)) ** 3
    assert statistic < limit, f"chi-square {statistic:.0f} of at most {limit:.0f}"


def assert_fair_orders(orders: Any) -> None:
    """Every row is everywhere equally often, and so is every pair of rows at three pairs of places.

    Args:
        orders: one order of the rows 0, 1, 2, ... in each line.
    """
    orders = np.asarray(orders)
    rows = orders.shape[1]
    places = np.broadcast_to(np.arange(rows), orders.shape)
    # Row and column sums are given: (rows - 1)^2 counts are free.
    counts = _count(orders, places, rows)
    assert_even(counts * (rows - 1) / rows, (rows - 1) ** 2)
    if len(orders) < 3 * rows * (rows - 1):
        return
    for one, other in ((0, 1), (0, rows // 2), (rows // 3, rows - 1)):
        pairs = _count(orders[:, one], orders[:, other], rows)
        assert not pairs.diagonal().any()
        assert_even(pairs[~np.eye(rows, dtype=bool)])


def _count(first: Any, second: Any, rows: int) -> Any:
    return np.bincount(np.ravel(first).astype(int) * rows + np.ravel(second), minlength=rows * rows).reshape(
        rows, rows
    )
