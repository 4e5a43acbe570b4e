"""Nested inputs as a hashable shape and a flat list, lists as tuples, the way a tf.data element has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LEAF = "*"
ABSENT = "-"


def flatten(value: Any, leaves: list[Any]) -> Any:
    """Appends the leaves of `value` in order; the skeleton that `rebuild` takes."""
    if value is None:
        return ABSENT
    if isinstance(value, Mapping):
        names = tuple(sorted(value))
        return (names, *(flatten(value[name], leaves) for name in names))
    if isinstance(value, (list, tuple)):
        return (None, *(flatten(child, leaves) for child in value))
    leaves.append(value)
    return LEAF


def rebuild(skeleton: Any, leaves: Iterator[Any]) -> Any:
    """The structure again, with the next leaves in it."""
    if skeleton == ABSENT:
        return None
    if skeleton == LEAF:
        return next(leaves)
    names, *children = skeleton
    parts = tuple(rebuild(child, leaves) for child in children)
    return parts if names is None else dict(zip(names, parts, strict=True))
