"""Whether two pipelines give the same: every value bit for bit, in the same order, in every epoch, the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

EXACT, LAST_PLACE = "exact", "last-place"
ALLOWED = (EXACT, LAST_PLACE)
# Under "last-place": a few roundings, relative to the larger value.
_ROUNDINGS = 32


def difference(first: Any, second: Any, elements: int, epochs: int = 2, allow: str = EXACT) -> str | None:
    """Where the pipelines differ in the first elements of each epoch; None if they do not.

    Both are iterated: give copies whose iterators nobody else needs.
    """
    if first.element_spec != second.element_spec:
        return f"elements of {second.element_spec} instead of {first.element_spec}"
    for epoch in range(1, epochs + 1):
        pairs = zip(_outcomes(first, elements), _outcomes(second, elements), strict=True)
        for number, (one, other) in enumerate(pairs):
            found = _unlike(one, other, allow)
            if found:
                return f"element {number} of epoch {epoch}: {found}"
            if one[0] != "element":
                break
    return None


def _outcomes(dataset: Any, elements: int) -> Iterator[tuple[str, Any]]:
    """What a program sees that asks for so many elements: elements, then the end or an error."""
    iterator = iter(dataset)
    for _ in range(elements):
        try:
            yield "element", next(iterator)
        except StopIteration:
            yield "end", None
        except tf.errors.OpError as error:
            yield "error", type(error)


def _unlike(one: tuple[str, Any], other: tuple[str, Any], allow: str) -> str | None:
    if one[0] != other[0] or (one[0] == "error" and one[1] is not other[1]):
        return f"{_said(other)} instead of {_said(one)}"
    if one[0] != "element":
        return None
    for left, right in zip(components(one[1]), components(other[1]), strict=True):
        if left.dtype != right.dtype or left.shape != right.shape:
            return f"{right.dtype} {right.shape} instead of {left.dtype} {left.shape}"
        if not _same(left, right, allow):
            return "other values"
    return None


def _said(outcome: tuple[str, Any]) -> str:
    return {"element": "an element", "end": "the end"}.get(outcome[0]) or outcome[1].__name__


def components(element: Any) -> list[Any]:
    """The arrays an element is made of, those of ragged and sparse tensors included."""
    flat = tf.nest.flatten(element, expand_composites=True)
    return [np.asarray(one.numpy()) for one in flat if one.dtype not in (tf.variant, tf.resource)]


def _same(left: Any, right: Any, allow: str) -> bool:
    if left.dtype == object:
        return bool(np.array_equal(left, right))
    if left.tobytes() == right.tobytes():
        return True
    if allow == EXACT or not np.issubdtype(left.dtype, np.inexact):
        return False
    tolerance = float(_ROUNDINGS * np.finfo(left.dtype).eps)
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True))


def size(element: Any) -> int:
    """The bytes of one element; of text, those of the characters and of TensorFlow's handles."""
    total = 0
    for one in components(element):
        total += sum(len(text) + 24 for text in one.ravel()) if one.dtype == object else one.nbytes
    return total
