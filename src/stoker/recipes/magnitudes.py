"""Numbers that a network cannot learn from: infinite ones, and those that float32 does not hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker.errors import ArgumentError
from stoker.units import counted

# Their squares are computed in float32: variances, losses.
_LARGEST = float(np.sqrt(np.finfo(np.float32).max))
# One over the variance of a target weighs its loss.
_SMALLEST_TARGET = 1e-18
_SMALLEST = float(np.finfo(np.float32).tiny)


def check_target(name: str, labels: Any) -> None:
    """The numbers of the target can be learned.

    Raises:
        ArgumentError: some are infinite, too large, or all are too small.
    """
    what = f"target {name!r}"
    _check(what, labels, "correct or leave out such rows")
    if (value := _too_small(labels, _SMALLEST_TARGET)) is not None:
        raise ArgumentError(
            f"{what} has values too small to be learned in float32, such as {value:g}: multiply them"
        )


def check_column(name: str, values: Any) -> None:
    """The numbers of an input column can be learned from.

    Raises:
        ArgumentError: some are infinite or too large.
    """
    _check(f"column {name!r}", values, "correct or empty such fields (an empty one is a missing number)")


def too_small(values: Any) -> str | None:
    """Why an input column is zero as a network sees it, though it is not in the file."""
    value = _too_small(values, _SMALLEST)
    return (
        None if value is None else f"its values, such as {value:g}, are too small for float32: multiply them"
    )


def _check(what: str, values: Any, remedy: str) -> None:
    if values.dtype.kind != "f":
        return
    infinite = np.isinf(values)
    if infinite.any():
        raise ArgumentError(f"{what} has {_place(values, infinite, 'infinite value')}: {remedy}")
    large = np.abs(values) > _LARGEST
    if large.any():
        found = _place(values, large, "value")
        raise ArgumentError(f"{what} has {found}, too large to be learned from in float32: scale the column")


def _place(values: Any, found: Any, noun: str) -> str:
    """How many there are, and where the first is."""
    row, count = int(np.argmax(found)), int(found.sum())
    return f"{counted(count, noun)}, {'the first ' * (count > 1)}in row {row + 1:,} ({values[row]:g})"


def _too_small(values: Any, least: float) -> float | None:
    """A value of numbers that are all nearer to zero than this, without being zero."""
    if values.dtype.kind != "f":
        return None
    largest = float(np.max(np.abs(values), initial=0.0, where=~np.isnan(values)))
    return largest if 0 < largest < least else None
