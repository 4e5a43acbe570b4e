"""Derives a member's step from those of two others, if their configs differ only in numbers, such as dropout rates.

Such numbers end up in the constants of a trace: as they are, or as a simple function of one of them. Two traced members
show which function. It must give both members' constants to the bit; then it gives those of the next member too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from stoker.tf_internals.types import Array
from stoker.train.many.flat_step import FlatStep, Instruction, has_same_bits

# The mark that replaces a number in a description.
_OPEN: Final = "~"
# Keras treats these numbers as "off" or "whole", and uses other operations for them.
_SPECIAL: Final = (0.0, 1.0)
# How Keras transforms a number before it becomes a constant.
_FORMS: Final[tuple[Callable[[float], float], ...]] = (
    lambda v: v,
    lambda v: 1 - v,
    lambda v: 1 / (1 - v),
    lambda v: -v,
    lambda v: v / 2,
    lambda v: 2 * v,
    lambda v: v * v,
    lambda v: math.sqrt(v),
    lambda v: math.sqrt(v / (1 - v)),
    lambda v: 1 - v / 2,
)
_MOST_PARTS: Final = 10_000


@dataclass(frozen=True)
class NumberedStep:
    """A traced step with the numbers in the config of its member."""

    flat: FlatStep
    numbers: tuple[float, ...]


def open_numbers(config: Any) -> tuple[Any, tuple[float, ...]]:
    """Return a config with its numbers taken out, and these numbers in order. Whole numbers and special ones stay."""
    numbers: list[float] = []

    def walk(one: Any) -> Any:
        if isinstance(one, dict):
            return {name: walk(value) for name, value in one.items()}
        if isinstance(one, list | tuple):
            return [walk(value) for value in one]
        if isinstance(one, float) and math.isfinite(one) and one > 0 and one not in _SPECIAL:
            numbers.append(one)
            return _OPEN
        return one

    return walk(config), tuple(numbers)


def derive_step(first: NumberedStep, second: NumberedStep, numbers: tuple[float, ...]) -> FlatStep | None:
    """Return the step of a member with these numbers; None if the two others do not show what its constants are."""
    if first.flat.difference(second.flat) or len(first.numbers) != len(numbers):
        return None
    open_places = [
        n for n, pair in enumerate(zip(first.numbers, second.numbers, strict=True)) if pair[0] != pair[1]
    ]
    if any(numbers[n] != first.numbers[n] for n in range(len(numbers)) if n not in open_places):
        # The two others share a number that this member does not have.
        return None
    made: list[Instruction] = []
    for mine, theirs in zip(first.flat.instructions, second.flat.instructions, strict=True):
        if mine.value is None or theirs.value is None or has_same_bits(mine.value, theirs.value):
            made.append(mine)
            continue
        values = [
            _explain(mine, theirs, (first.numbers[n], second.numbers[n]), numbers[n]) for n in open_places
        ]
        known = [one for found in values for one in found]
        if not known or any(one.tobytes() != known[0].tobytes() for one in known):
            return None
        made.append(replace(mine, value=known[0]))
    return replace(first.flat, instructions=made)


def _explain(mine: Instruction, theirs: Instruction, pair: tuple[float, float], number: float) -> list[Array]:
    """Return the constants for a number, from each form that maps the pair's numbers to their known constants."""
    assert mine.value is not None
    assert theirs.value is not None
    if mine.value.size != 1 or mine.value.dtype.kind != "f":
        return []
    wanted = mine.value, theirs.value
    found = []
    for form in (*_FORMS, *_parts(pair[0], float(mine.value.reshape(-1)[0]))):
        try:
            # Keras computes with Python numbers, in float64.
            given = [_cast(form(one), mine.value) for one in (*pair, number)]
        except (ArithmeticError, ValueError):
            continue
        if all(one.tobytes() == known.tobytes() for one, known in zip(given, wanted, strict=False)):
            found.append(given[2])
    return found


def _parts(number: float, constant: float) -> Sequence[Callable[[float], float]]:
    """Return a form that divides the number by a count, as label smoothing does."""
    if not constant or not 2 < (parts := round(number / constant)) < _MOST_PARTS:
        return ()
    return (lambda v: v / parts,)


def _cast(value: float, like: Array) -> Array:
    made: Array = np.asarray(value, like.dtype).reshape(like.shape)
    return made
