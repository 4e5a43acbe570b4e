"""Statistics of the training rows, so that a server can tell when requests have drifted away from them.

For numbers: the mean, the spread and the share of missing values; for categories: which ones occurred. They come from
the features of `stoker.data`, or else from the examples or the first batches of the dataset, if there are enough rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from stoker.data.features import Features
from stoker.serve.drift import InputStatistics
from stoker.serve.rows import RowError, as_rows
from stoker.serve.signature import Array, Field

# Fewer rows say too little; of more, the first ones are enough.
_FEWEST, _MOST = 100, 5000
# Larger vocabularies are not repeated in `bundle.json`.
_MOST_WORDS = 10_000


def statistics_of(fields: Sequence[Field], features: object, examples: object) -> dict[str, InputStatistics]:
    """Return the statistics by input; inputs about which nothing is known are left out."""
    table = features if isinstance(features, Features) else getattr(features, "features", None)
    if isinstance(table, Features):
        return {field.name: found for field in fields if (found := _of_column(field, table))}
    for given in (examples, features):
        rows = _rows(fields, given)
        if rows is not None and len(rows[0]) >= _FEWEST:
            return {
                field.name: found
                for field, array in zip(fields, rows, strict=True)
                if (found := _of_array(array))
            }
    return {}


def _of_column(field: Field, table: Features) -> InputStatistics:
    if field.name not in table:
        return {}
    column = table[field.name]
    if column.vocabulary is not None and len(column.vocabulary) <= _MOST_WORDS:
        return {"words": list(column.vocabulary[1:])}
    if field.name not in table.moments:
        return {}
    count = table.moments[field.name].count
    return {
        "rows": int(count + column.missing),
        "mean": table.mean(field.name),
        "deviation": math.sqrt(max(0.0, table.variance(field.name))),
        "missing": column.missing / max(1, count + column.missing),
    }


def _of_array(array: Array) -> InputStatistics:
    if array.dtype.kind not in "biuf":
        return {}
    numbers = array.reshape(-1)
    there = numbers[np.isfinite(numbers)] if array.dtype.kind == "f" else numbers
    if not len(there):
        return {}
    return {
        "rows": len(array),
        "mean": float(there.mean(dtype=np.float64)),
        "deviation": float(there.std(dtype=np.float64)),
        "missing": 1 - len(there) / len(numbers),
    }


def _rows(fields: Sequence[Field], given: object) -> list[Array] | None:
    """Return an array for each input, for as many rows as are at hand."""
    if given is None:
        return None
    try:
        if not isinstance(given, tf.data.Dataset):
            return [array[:_MOST] for array in as_rows(fields, given).arrays]
        parts, count = [], 0
        for element in itertools.islice(given.as_numpy_iterator(), _MOST):
            rows = as_rows(fields, element[0] if isinstance(element, tuple) else element)
            parts.append(rows.arrays)
            count += rows.count
            if count >= _MOST:
                break
    except RowError:
        return None  # the dataset's rows are not what the bundle takes as input
    return [np.concatenate(one) for one in zip(*parts, strict=True)] if parts else None
