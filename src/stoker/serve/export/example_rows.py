"""Draw example rows from what is known of the inputs, if none are given. Every export draws the same ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stoker.data.features import Features
from stoker.serve.signature import MISSING_CATEGORY, Array, Field

ROWS = 5
_FREE = 8  # the size used for free dimensions
_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog")


def draw_rows(fields: Sequence[Field], features: object) -> list[Array]:
    """Draw `ROWS` rows for each field."""
    table = features if isinstance(features, Features) else getattr(features, "features", None)
    random = np.random.default_rng(0)
    return [_values(field, table if isinstance(table, Features) else None, random) for field in fields]


def _values(field: Field, table: Features | None, random: np.random.Generator) -> Array:
    shape = (ROWS, *(_FREE if size is None else size for size in field.shape))
    if field.dtype == "string":
        return _texts(field, table, shape, random)
    if table is not None and field.name in table.moments:
        spread = max(table.variance(field.name), 0.0) ** 0.5
        values = table.mean(field.name) + spread * random.standard_normal(shape)
        return np.asarray(values, field.dtype)
    dtype = np.dtype(field.dtype)
    if dtype == np.uint8:
        return random.integers(0, 256, shape).astype(dtype)
    if dtype.kind in "biu":
        # The values are ids of something: 0 and 1 always exist.
        return random.integers(0, 2, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def _texts(
    field: Field, table: Features | None, shape: tuple[int, ...], random: np.random.Generator
) -> Array:
    array = np.empty(int(np.prod(shape)), object)
    vocabulary = table[field.name].vocabulary if table is not None and field.name in table else None
    if vocabulary is not None:
        words = [*vocabulary[1:], MISSING_CATEGORY]
        array[:] = [words[number % len(words)] for number in range(len(array))]
    else:
        array[:] = [" ".join(random.choice(_WORDS, number % 5 + 1)) for number in range(len(array))]
    return array.reshape(shape)
