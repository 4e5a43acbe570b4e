"""Compare two versions' answers to the same rows: which rows changed, and by how much.

If both give a label, a row has changed if its label has. Otherwise a row has changed if a text or a whole number has,
or if another number is off by more than a tolerance, relative to the largest number of its output in that row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from stoker.errors import ArgumentError
from stoker.serve.bundle import LABEL
from stoker.serve.signature import Array, Field

TOLERANCE: Final = 0.01


class IncomparableError(ArgumentError):
    """The new version's answer cannot be compared with the old one's."""


@dataclass(frozen=True)
class OutputChanges:
    """The changes of one output, row by row.

    Attributes:
        changed: whether the row has changed.
        distance: how far off the worst number is; None for texts.
    """

    changed: Array
    distance: Array | None


@dataclass(frozen=True)
class AnswerChanges:
    """The changes of the answers to some rows: all outputs, and whether a row counts as changed."""

    outputs: dict[str, OutputChanges]
    changed: Array

    @property
    def share(self) -> float:
        """The share of the rows that changed."""
        return float(self.changed.mean()) if len(self.changed) else 0.0


def read_answers(fields: Sequence[Field], answers: Mapping[str, object]) -> dict[str, Array]:
    """Convert answers from JSON to arrays of the types that the new version's outputs have.

    Raises:
        IncomparableError: they cannot have these types.
    """
    types = {field.name: object if field.dtype == "string" else np.dtype(field.dtype) for field in fields}
    found = {}
    for name, values in answers.items():
        try:
            # In JSON, null stands for a number that is not finite.
            found[name] = np.array(values, types.get(name, object))
        except (TypeError, ValueError, OverflowError):
            raise IncomparableError(f"the output {name!r} now has a different type") from None
    return found


def compare_answers(
    old: Mapping[str, Array], new: Mapping[str, Array], tolerance: float = TOLERANCE
) -> AnswerChanges:
    """Compare two versions' answers to the same rows.

    Raises:
        IncomparableError: the new version lacks an output, or gives it in another shape.
    """
    outputs = {}
    for name, before in old.items():
        after = new.get(name)
        if after is None:
            raise IncomparableError(f"there is no output {name!r} any more")
        if after.shape != before.shape:
            raise IncomparableError(
                f"the output {name!r} has shape {list(after.shape)} instead of {list(before.shape)}"
            )
        # A model from elsewhere may answer with a single value.
        outputs[name] = _compare(np.atleast_1d(before), np.atleast_1d(after), tolerance)
    if not outputs:
        raise IncomparableError("there are no answers to compare")
    deciding = [outputs[LABEL]] if LABEL in outputs else list(outputs.values())
    changed = [one.changed for one in deciding]
    if len({len(one) for one in changed}) > 1:  # nor do its outputs need a value for each row
        changed = [np.array([any(one.any() for one in changed)])]
    return AnswerChanges(outputs, np.any(changed, axis=0))


def _compare(before: Array, after: Array, tolerance: float) -> OutputChanges:
    rows = len(before)
    if before.dtype.kind not in "biuf" or after.dtype.kind not in "biuf":
        differs = (_as_texts(before) != _as_texts(after)).reshape(rows, -1)
        return OutputChanges(differs.any(axis=1), None)
    old, new = (one.astype(np.float64).reshape(rows, -1) for one in (before, after))
    with np.errstate(invalid="ignore"):
        off = np.abs(new - old)
    off[(old == new) | (np.isnan(old) & np.isnan(new))] = 0.0  # equal infinite values, too
    off[np.isnan(off)] = np.inf
    distance = off.max(axis=1, initial=0.0)
    if before.dtype.kind != "f":
        return OutputChanges(distance > 0, distance)
    finite = np.where(np.isfinite(old), np.abs(old), 0.0)
    return OutputChanges(distance > tolerance * finite.max(axis=1, initial=0.0), distance)


def _as_texts(values: Array) -> Array:
    found = np.empty(values.size, object)
    found[:] = [
        one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in values.ravel().tolist()
    ]
    return found.reshape(values.shape)
