"""Drift: whether requests still look like the training rows, by comparing sampled rows with their statistics.

For numbers: the mean (in standard deviations of the training rows), the spread, and the share of missing values. For
categories: the share of values that the training rows did not have. Old rows count less and less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from stoker.serve.examples import as_bytes
from stoker.serve.signature import MISSING_CATEGORY, Array, Field

# Larger shifts are reported if they cannot be chance.
_LIMITS = {"mean": 0.5, "spread": 1.0, "missing": 0.1, "unseen": 0.05}
_SURE = 4.0
_FEWEST = 50
# Beyond this number of rows, everything seen so far counts half.
_MOST = 10_000


class InputStatistics(TypedDict, total=False):
    """The statistics in `bundle.json` of one input's training rows: of numbers or of categories."""

    rows: int
    mean: float
    deviation: float
    missing: float
    words: list[str]


@dataclass(frozen=True)
class Shift:
    """The drift of one input from the training rows, in one respect.

    Attributes:
        input: the name of the input.
        of: the respect: "mean" (in deviations), "spread" (in powers of two), "missing" or "unseen" (shares).
        amount: how far it has moved.
        sure: whether it is more than chance, and large enough to report.
        line: the shift in words.
    """

    input: str
    of: str
    amount: float
    sure: bool
    line: str


class Drift:
    """The requests to one bundle, summed up."""

    def __init__(self, fields: Sequence[Field], statistics: Mapping[str, InputStatistics]) -> None:
        self._inputs = [
            (place, field.name, _Words(known["words"]) if "words" in known else _Numbers(known))
            for place, field in enumerate(fields)
            if (known := statistics.get(field.name))
        ]

    def __bool__(self) -> bool:
        """Return whether anything is known about the training rows."""
        return bool(self._inputs)

    def add(self, arrays: Sequence[Array]) -> None:
        """Add the rows of a request."""
        for place, _, seen in self._inputs:
            seen.add(arrays[place])

    def shifts(self) -> list[Shift]:
        """Return how far each input has moved from the training rows so far."""
        return [shift for _, name, seen in self._inputs for shift in seen.shifts(name)]


class _Numbers:
    def __init__(self, known: InputStatistics) -> None:
        self._mean, self._deviation = float(known["mean"]), float(known["deviation"])
        self._missing = float(known["missing"])
        self._rows = self._all = self._there = self._sum = self._squares = 0.0

    def add(self, array: Array) -> None:
        numbers = np.asarray(array, np.float64) - self._mean  # small numbers: their squares stay exact
        there = numbers[np.isfinite(numbers)]
        self._rows += len(numbers)
        self._all += numbers.size
        self._there += there.size
        self._sum += float(there.sum())
        self._squares += float((there * there).sum())
        if self._rows > _MOST:
            for name in ("_rows", "_all", "_there", "_sum", "_squares"):
                setattr(self, name, getattr(self, name) / 2)

    def shifts(self, name: str) -> list[Shift]:
        found = []
        if self._rows and self._all:
            missing = 1 - self._there / self._all
            apart = abs(missing - self._missing)
            line = f"{missing:.0%} are missing, in training {self._missing:.0%}"
            found.append(_shift(name, "missing", apart, self._rows, line))
        if self._there:
            mean = self._sum / self._there
            spread = math.sqrt(max(0.0, self._squares / self._there - mean * mean))
            unit = self._deviation or 1e-9
            line = f"the mean is {self._mean + mean:.4g}, in training {self._mean:.4g} (spread {self._deviation:.4g})"
            found.append(_shift(name, "mean", abs(mean) / unit, self._rows, line))
            if spread and self._deviation and self._rows >= _FEWEST:
                line = f"the deviation is {spread:.4g}, in training {self._deviation:.4g}"
                found.append(_shift(name, "spread", abs(math.log2(spread / unit)), self._rows, line))
        return found


class _Words:
    def __init__(self, words: Sequence[str]) -> None:
        self._known = {word.encode("utf-8") for word in words} | {MISSING_CATEGORY.encode(), b""}
        self._rows = self._unseen = 0.0
        self._example = ""

    def add(self, array: Array) -> None:
        for one in np.asarray(array, object).ravel():
            text = as_bytes(one)
            if text not in self._known:
                self._unseen += 1
                self._example = text.decode("utf-8", "replace")[:40]
        self._rows += len(array)
        if self._rows > _MOST:
            self._rows, self._unseen = self._rows / 2, self._unseen / 2

    def shifts(self, name: str) -> list[Shift]:
        if not self._rows:
            return []
        share = self._unseen / self._rows
        line = f"{share:.0%} are categories that training did not have, such as {self._example!r}"
        return [_shift(name, "unseen", share, self._rows, line)]


def _shift(name: str, of: str, amount: float, rows: float, words: str) -> Shift:
    # By chance, a mean is off by at most about one deviation over the root of the rows, and a share by no more than
    # that.
    sure = rows >= _FEWEST and amount > _LIMITS[of] and amount > _SURE / math.sqrt(rows)
    return Shift(name, of, amount, sure, f"{name!r} has drifted: {words}; over {rows:,.0f} sampled rows")
