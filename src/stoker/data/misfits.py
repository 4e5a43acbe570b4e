"""A value that does not fit its column: a wider column that it fits, or the line that names it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from stoker.data.columns import Column, Widen
from stoker.errors import ArgumentError

_SPOKEN = {
    "number": "a number",
    "whole": "a whole number",
    "truth": "true or false",
    "date": "a date",
    "category": "text",
    "text": "text",
}


def widened(column: Column, value: Any) -> Column | None:
    """The column as it must be to hold this value too; None when nothing but text would."""
    text = str(value)
    if column.blank and not column.asked:
        return replace(column, kind=_kind_of(text), blank=False)
    if column.kind == "whole" and not column.asked and not isinstance(value, bool):
        return column.as_kind("number") if not _is_whole(text) and _is_number(text) else None
    if column.kind == "date" and not column.zone:
        finer = {"D": "s", "s": "us", "ms": "us", "us": "ns"}.get(column.unit)
        if finer and _is_date(text, finer):
            return replace(column, unit=finer)
    return None


def refuse(column: Column, value: Any, where: str, row: int | None) -> Widen | ArgumentError:
    """What to raise for a value that does not fit.

    Args:
        column: it is in.
        value: as the source gave it.
        where: the file or table.
        row: of the value, from 1; None where it is not known.
    """
    wider = widened(column, value)
    if wider is not None:
        return Widen(wider)
    place = where if row is None else f"{where}, row {row:,}"
    if column.kind == "whole" and _is_whole(str(value)):
        return ArgumentError(
            f"{place}: {value} in column {column.name} is too large for int64: "
            f"read it with types={{{column.name!r}: 'number'}} (rounded) or 'category' (exact)"
        )
    return ArgumentError(
        f"{place}: {value!r} in column {column.name} is not {_SPOKEN[column.kind]}, as the values before it are: "
        f"correct it, or read the column with types={{{column.name!r}: 'category'}}"
    )


def conform(column: Column, values: Any, where: str, row: int) -> Any:
    """Values of a block, cast to what the column wants.

    Raises:
        Widen, ArgumentError: one does not fit.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    wanted = pa.string() if column.kind == "category" else column.arrow
    try:
        return values.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _first_misfit(column, values, wanted, where, row) from None


def _first_misfit(
    column: Column, values: Any, wanted: pa.DataType, where: str, row: int
) -> Widen | ArgumentError:
    for index in range(len(values)):
        try:
            values.slice(index, 1).cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return refuse(column, values[index].as_py(), where, row + index + 1)
    return refuse(column, values[0].as_py(), where, row + 1)


def from_python(values: Iterable[Any], name: str, where: str, row: int) -> Any:
    """An Arrow array of Python values.

    Raises:
        ArgumentError: they are of several types.
    """
    listed = list(values)
    try:
        return pa.array(listed)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        kinds = {type(value) for value in listed if value is not None}
        if kinds == {int, float} or kinds == {int}:
            return _mixed_numbers(listed, name, where, row)
        first = next(i for i, value in enumerate(listed) if value is not None)
        other = next(
            i
            for i, value in enumerate(listed)
            if value is not None and type(value) is not type(listed[first])
        )
        raise ArgumentError(
            f"{where}, row {row + other + 1:,}: {listed[other]!r} in column {name} is "
            f"{type(listed[other]).__name__}, {listed[first]!r} in row {row + first + 1:,} is "
            f"{type(listed[first]).__name__}: make them alike"
        ) from None


def _mixed_numbers(listed: list[Any], name: str, where: str, row: int) -> Any:
    for index, value in enumerate(listed):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ArgumentError(
                f"{where}, row {row + index + 1:,}: {value} in column {name} is too large for int64"
            )
    return pa.array([None if value is None else float(value) for value in listed])


def _kind_of(text: str) -> str:
    if _is_whole(text):
        return "whole"
    return "number" if _is_number(text) else "category"


def _is_whole(text: str) -> bool:
    return text.strip().removeprefix("-").removeprefix("+").isdigit()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(text: str, unit: str) -> bool:
    try:
        pa.array([text]).cast(pa.timestamp(unit))
    except pa.ArrowInvalid:
        return False
    return True
