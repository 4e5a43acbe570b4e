"""Check that two pipelines give the same elements: the same bits, order and errors in every epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from stoker.data.array_types import Array
from stoker.tf_internals.types import Dataset, Nest

EXACT, LAST_PLACE = "exact", "last-place"
ALLOWED = (EXACT, LAST_PLACE)
# With "last-place": a few roundings, relative to the larger value.
_ROUNDINGS = 32
# "element", "end" or "error", and the element or the type of the error.
_Outcome: TypeAlias = tuple[str, Nest]


def difference(
    first: Dataset, second: Dataset, elements: int, epochs: int = 2, allow: str = EXACT
) -> str | None:
    """Say where the pipelines differ in the first elements of each epoch; None if they do not.

    Both are iterated: pass copies whose state does not matter.
    """
    if first.element_spec != second.element_spec:
        return f"elements of {second.element_spec} instead of {first.element_spec}"
    for epoch in range(1, epochs + 1):
        pairs = zip(_outcomes(first, elements), _outcomes(second, elements), strict=True)
        for number, (one, other) in enumerate(pairs):
            found = _compare(one, other, allow)
            if found:
                return f"element {number} of epoch {epoch}: {found}"
            if one[0] != "element":
                break
    return None


def _outcomes(dataset: Dataset, elements: int) -> Iterator[_Outcome]:
    """Yield what a program gets when it asks for this many elements: elements, then the end or an error."""
    iterator = iter(dataset)
    for _ in range(elements):
        try:
            yield "element", next(iterator)
        except StopIteration:
            yield "end", None
        except tf.errors.OpError as error:
            yield "error", type(error)


def _compare(one: _Outcome, other: _Outcome, allow: str) -> str | None:
    if one[0] != other[0] or (one[0] == "error" and one[1] is not other[1]):
        return f"{_name_outcome(other)} instead of {_name_outcome(one)}"
    if one[0] != "element":
        return None
    for left, right in zip(components(one[1]), components(other[1]), strict=True):
        if left.dtype != right.dtype or left.shape != right.shape:
            return f"{right.dtype} {right.shape} instead of {left.dtype} {left.shape}"
        if not _is_same(left, right, allow):
            return "other values"
    return None


def _name_outcome(outcome: _Outcome) -> str:
    return {"element": "an element", "end": "the end"}.get(outcome[0]) or outcome[1].__name__


def components(element: Nest) -> list[Array]:
    """Return the arrays of an element, including those of ragged and sparse tensors."""
    flat = tf.nest.flatten(element, expand_composites=True)
    return [np.asarray(one.numpy()) for one in flat if one.dtype not in (tf.variant, tf.resource)]


def _is_same(left: Array, right: Array, allow: str) -> bool:
    if left.dtype == object:
        return bool(np.array_equal(left, right))
    if left.tobytes() == right.tobytes():
        return True
    if allow == EXACT or not np.issubdtype(left.dtype, np.inexact):
        return False
    tolerance = float(_ROUNDINGS * np.finfo(left.dtype).eps)
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True))


def size(element: Nest) -> int:
    """Return the bytes of one element; text counts its characters and TensorFlow's handles."""
    total = 0
    for one in components(element):
        total += sum(len(text) + 24 for text in one.ravel()) if one.dtype == object else one.nbytes
    return total
