"""Handle a value that does not fit its column: find a wider column that holds it, or write the line that refuses it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from stoker.data.columns import Column, Widen
from stoker.errors import ArgumentError
from stoker.units import quantity

# The number of different texts that a message names.
_NAMED = 3
KIND_WORDS = {
    "number": "a number",
    "whole": "a whole number",
    "truth": "true or false",
    "date": "a date",
    "category": "text",
    "text": "text",
}


def widen(column: Column, value: object) -> Column | None:
    """Return a column that holds this value, too; None if only text would."""
    text = str(value)
    if column.blank and not column.asked:
        return replace(column, kind=_kind_of(text), blank=False)
    if column.kind == "whole" and not column.asked and not isinstance(value, bool):
        return column.as_kind("number") if not is_whole(text) and _is_number(text) else None
    if column.kind == "date" and not column.zone:
        finer = {"D": "s", "s": "us", "ms": "us", "us": "ns"}.get(column.unit)
        if finer and _is_date(text, finer):
            return replace(column, unit=finer)
    return None


def refuse(column: Column, value: object, where: str, row: int | None) -> Widen | ArgumentError:
    """Return the error to raise for a value that does not fit.

    Args:
        column: the column of the value.
        value: the value, as the source gave it.
        where: the file or table.
        row: the row of the value, counted from 1; None if unknown.
    """
    wider = widen(column, value)
    if wider is not None:
        return Widen(wider)
    place = where if row is None else f"{where}, row {row:,}"
    if column.kind == "whole" and is_whole(str(value)):
        return ArgumentError(explain_too_large(place, value, column.name))
    return ArgumentError(
        f"{place}: {value!r} in column {column.name} is not {KIND_WORDS[column.kind]}, as the values before it are: "
        f"correct it, or read the column with types={{{column.name!r}: 'category'}}"
    )


def explain_too_large(place: str, value: object, column: str) -> str:
    """Return the line that refuses a whole number that int64 does not hold."""
    return (
        f"{place}: {value} in column {column} is too large for int64: "
        f"read it with types={{{column!r}: 'number'}} (rounded) or 'category' (exact)"
    )


def conform(column: Column, values: pa.Array | pa.ChunkedArray, where: str, row: int) -> pa.Array:
    """Cast the values of a block to the type that the column wants.

    Raises:
        Widen, ArgumentError: a value does not fit.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    wanted = pa.string() if column.kind == "category" else column.arrow
    try:
        return values.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _explain_first_misfit(column, values, wanted, where, row) from None


def _explain_first_misfit(
    column: Column, values: pa.Array, wanted: pa.DataType, where: str, row: int
) -> Widen | ArgumentError:
    for index in range(len(values)):
        try:
            values.slice(index, 1).cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return refuse(column, values[index].as_py(), where, row + index + 1)
    return refuse(column, values[0].as_py(), where, row + 1)


def convert_from_python(
    values: Iterable[object], name: str, where: str, row: int, missing: tuple[str, ...] = ()
) -> pa.Array:
    """Return an Arrow array of Python values.

    Args:
        values: the values of a column; None is a missing one.
        name: the name of the column.
        where: the query or frame, for messages.
        row: how many rows come before these.
        missing: texts that stand for missing values.

    Raises:
        ArgumentError: the values have several types, or one that does not fit a table.
    """
    listed = [None if isinstance(value, str) and value in missing else value for value in values]
    try:
        return pa.array(listed)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        kinds = {type(value) for value in listed if value is not None}
        if kinds == {int, float} or kinds == {int}:
            return _convert_mixed_numbers(listed, name, where, row)
        first = next(i for i, value in enumerate(listed) if value is not None)
        if len(kinds) == 1:
            raise ArgumentError(
                f"{where}: column {name} holds {kinds.pop().__name__} ({listed[first]!r}), which does not fit a table "
                "of numbers and text: name the columns you want with columns=[...]"
            ) from None
        other = next(
            i
            for i, value in enumerate(listed)
            if value is not None and type(value) is not type(listed[first])
        )
        raise ArgumentError(
            f"{where}, row {row + other + 1:,}: {listed[other]!r} in column {name} is "
            f"{type(listed[other]).__name__}, {listed[first]!r} in row {row + first + 1:,} is "
            f"{type(listed[first]).__name__}: make them the same type{_advise_missing(listed)}"
        ) from None


def _advise_missing(listed: list[object]) -> str:
    """Return the advice to treat texts among other values as missing; empty if there are many of them."""
    texts = [value for value in listed if isinstance(value, str)]
    different = list(dict.fromkeys(texts))
    if not texts or len(different) > _NAMED or 2 * len(texts) > len(listed):
        return ""
    spelled = repr(different[0] if len(different) == 1 else different)
    return f", or take {quantity(len(texts), 'text')} as missing with missing={spelled}"


def _convert_mixed_numbers(listed: list[object], name: str, where: str, row: int) -> pa.Array:
    for index, value in enumerate(listed):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ArgumentError(
                f"{where}, row {row + index + 1:,}: {value} in column {name} is too large for int64: "
                "make it text, or name the columns you want with columns=[...]"
            )
    # Arrow itself refuses to round a whole number beyond 2**53.
    return pa.array([float(value) if isinstance(value, int | float) else None for value in listed])


def _kind_of(text: str) -> str:
    if is_whole(text):
        return "whole"
    return "number" if _is_number(text) else "category"


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number, however large."""
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
