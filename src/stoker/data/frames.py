"""Turn data in memory into Arrow tables: pandas and polars frames, Hugging Face datasets, dicts of columns."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from stoker.data.columns import check_different
from stoker.data.misfits import convert_from_python
from stoker.errors import ArgumentError
from stoker.units import quantity

# A pandas or polars frame, an Arrow table, a Hugging Face dataset or a dict of columns, recognised by their methods.
ColumnHolder: TypeAlias = Any
# One column of such an object.
_Values: TypeAlias = Any
_FAILURES = (pa.ArrowException, OverflowError, TypeError, ValueError)


def to_arrow(data: ColumnHolder, missing: tuple[str, ...]) -> tuple[pa.Table, dict[str, str]]:
    """Return an Arrow table of any object that holds columns.

    Args:
        data: a pandas or polars frame, an Arrow table, a Hugging Face dataset, a dict of columns.
        missing: texts that stand for missing values.

    Returns:
        The table, and for each column that does not fit into one, the reason.

    Raises:
        ArgumentError: the object has another type, or two columns have the same name.
    """
    where = f"the {type(data).__name__}"
    names = _names(data)
    if names is None:
        raise ArgumentError(
            f"frame: give a pandas or polars frame, an Arrow table, a Hugging Face dataset or a dict of columns, "
            f"not {type(data).__name__}"
        )
    check_different(names, where)
    if isinstance(data, dict):
        _check_lists(data)
    try:
        return _convert_whole(data), {}
    except _FAILURES:
        # Convert column by column, so that one that does not fit is refused by name, and only if it is wanted.
        return _convert_by_column(data, where, missing)


def _names(data: ColumnHolder) -> list[str] | None:
    if isinstance(data, pa.Table | pa.RecordBatch):
        return list(data.schema.names)
    if isinstance(data, dict):
        return [str(name) for name in data]
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return list(data.column_names)
    if hasattr(data, "columns") and (hasattr(data, "to_arrow") or hasattr(data, "iloc")):
        return [str(name) for name in data.columns]
    return None


def _convert_whole(data: ColumnHolder) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, dict):
        return pa.table({str(name): values for name, values in data.items()})
    if hasattr(data, "with_format"):
        return data.with_format("arrow")[:]
    if hasattr(data, "to_arrow"):
        return data.to_arrow()
    return pa.Table.from_pandas(data, preserve_index=False)


def _check_lists(data: dict[object, _Values]) -> None:
    lengths = {}
    for name, values in data.items():
        if not hasattr(values, "__len__") or isinstance(values, str | bytes):
            raise ArgumentError(
                f"column {name} of the dict is {type(values).__name__}: give a list or an array of values"
            )
        lengths[name] = len(values)
    for name, length in lengths.items():
        first, rows = next(iter(lengths.items()))
        if length != rows:
            raise ArgumentError(
                f"column {name} of the dict has {quantity(length, 'value')} where {first} has {rows:,}: "
                "make them the same length"
            )


def _convert_by_column(
    data: ColumnHolder, where: str, missing: tuple[str, ...]
) -> tuple[pa.Table, dict[str, str]]:
    columns, unfit = {}, {}
    given = data.items() if hasattr(data, "items") else ((name, data[name]) for name in data.columns)
    for name, values in given:
        try:
            columns[str(name)] = _column(values, str(name), where, missing)
        except ArgumentError as error:
            unfit[str(name)] = str(error)
            columns[str(name)] = pa.nulls(len(values))
    return pa.table(columns), unfit


def _column(values: _Values, name: str, where: str, missing: tuple[str, ...]) -> pa.Array:
    if str(getattr(values, "dtype", "")).startswith("Sparse"):
        values = np.asarray(values)
    try:
        return values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values, from_pandas=True)
    except _FAILURES:
        listed = [None if _is_gap(value) else value for value in values]
        return convert_from_python(listed, name, where, 0, missing)


def _is_gap(value: object) -> bool:
    """Return whether a frame uses this value for a missing one."""
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")
