"""Nested inputs as a hashable shape and a flat list, lists as tuples, the way a tf.data element has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from stoker.tf_internals.types import Nest, Tensor

LEAF = "*"
ABSENT = "-"
# A leaf, nothing, or the names (None for a tuple) and the skeletons of the children.
Skeleton: TypeAlias = str | tuple[Any, ...]


def flatten(value: Nest, leaves: list[Tensor]) -> Skeleton:
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


def rebuild(skeleton: Skeleton, leaves: Iterator[Tensor]) -> Nest:
    """The structure again, with the next leaves in it."""
    if isinstance(skeleton, str):
        return next(leaves) if skeleton == LEAF else None
    names, *children = skeleton
    parts = tuple(rebuild(child, leaves) for child in children)
    return parts if names is None else dict(zip(names, parts, strict=True))
