"""Numbers that a network cannot learn from: infinite ones, and those that float32 cannot hold."""

from __future__ import annotations

import numpy as np

from stoker.data.array_types import Array, Mask
from stoker.errors import ArgumentError
from stoker.units import counted

# Variances and losses square numbers in float32.
_LARGEST = float(np.sqrt(np.finfo(np.float32).max))
# The loss is divided by the variance of the target.
_SMALLEST_TARGET = 1e-18
_SMALLEST = float(np.finfo(np.float32).tiny)


def check_target(name: str, labels: Array) -> None:
    """Check that the numbers of the target can be learned.

    Raises:
        ArgumentError: some are infinite or too large, or all are too small.
    """
    what = f"target {name!r}"
    _check(what, labels, "correct these rows, or leave them out")
    if (value := _too_small(labels, _SMALLEST_TARGET)) is not None:
        raise ArgumentError(
            f"{what} has values too small to be learned in float32, such as {value:g}: multiply them"
        )


def check_column(name: str, values: Array) -> None:
    """Check that the numbers of an input column can be learned from.

    Raises:
        ArgumentError: some are infinite or too large.
    """
    _check(
        f"column {name!r}", values, "correct these fields, or empty them (an empty field is a missing number)"
    )


def too_small(values: Array) -> str | None:
    """Why a network would see only zeros in an input column; None if it would not."""
    value = _too_small(values, _SMALLEST)
    return (
        None if value is None else f"its values, such as {value:g}, are too small for float32: multiply them"
    )


def _check(what: str, values: Array, remedy: str) -> None:
    if values.dtype.kind != "f":
        return
    infinite = np.isinf(values)
    if infinite.any():
        raise ArgumentError(f"{what} has {_place(values, infinite, 'infinite value')}: {remedy}")
    large = np.abs(values) > _LARGEST
    if large.any():
        found = _place(values, large, "value")
        raise ArgumentError(f"{what} has {found}, too large to be learned from in float32: scale the column")


def _place(values: Array, found: Mask, noun: str) -> str:
    """How many there are, and which is the first."""
    row, count = int(np.argmax(found)), int(found.sum())
    return f"{counted(count, noun)}, {'the first ' * (count > 1)}in row {row + 1:,} ({values[row]:g})"


def _too_small(values: Array, least: float) -> float | None:
    """The largest value if all are nearer to zero than this, but not all zero; otherwise None."""
    if values.dtype.kind != "f":
        return None
    largest = float(np.max(np.abs(values), initial=0.0, where=~np.isnan(values)))
    return largest if 0 < largest < least else None
