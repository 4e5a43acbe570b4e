"""Example rows where none are given: drawn from what is known of the inputs, the same at every export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker.data.features import Features
from stoker.serve.signature import MISSING_CATEGORY, Field

ROWS = 5
_FREE = 8  # a size for dimensions that are free
_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog")


def drawn(fields: Sequence[Field], features: Any) -> list[Any]:
    """`ROWS` rows for each field."""
    table = features if isinstance(features, Features) else getattr(features, "features", None)
    random = np.random.default_rng(0)
    return [_values(field, table if isinstance(table, Features) else None, random) for field in fields]


def _values(field: Field, table: Features | None, random: Any) -> Any:
    shape = (ROWS, *(_FREE if size is None else size for size in field.shape))
    if field.dtype == "string":
        return _texts(field, table, shape, random)
    if table is not None and field.name in table.moments:
        spread = max(table.variance(field.name), 0.0) ** 0.5
        return (table.mean(field.name) + spread * random.standard_normal(shape)).astype(field.dtype)
    dtype = np.dtype(field.dtype)
    if dtype == np.uint8:
        return random.integers(0, 256, shape).astype(dtype)
    if dtype.kind in "biu":
        return random.integers(0, 2, shape).astype(
            dtype
        )  # the numbers of something: 0 and 1 are always among them
    return random.standard_normal(shape).astype(dtype)


def _texts(field: Field, table: Features | None, shape: tuple[int, ...], random: Any) -> Any:
    array: Any = np.empty(int(np.prod(shape)), object)
    vocabulary = table[field.name].vocabulary if table is not None and field.name in table else None
    if vocabulary is not None:
        words = [*vocabulary[1:], MISSING_CATEGORY]
        array[:] = [words[number % len(words)] for number in range(len(array))]
    else:
        array[:] = [" ".join(random.choice(_WORDS, number % 5 + 1)) for number in range(len(array))]
    return array.reshape(shape)
