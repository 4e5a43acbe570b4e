"""The way a table was read: each column's kind, what was left out and why, cells that could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from stoker.data.features import Feature, Features
from stoker.data.labels import ClassName
from stoker.recipes.progress import say
from stoker.units import quantity

_KINDS = {"whole": "whole number", "truth": "true or false", "text": "free text"}
# If there are more columns than this, the terminal lists only those about which there is something to say.
_MOST_LISTED = 30
_WIDEST = 28
# How many words in several cases are named.
_SHOWN = 3
_CLASSES_SHOWN = 5
# A category with more values than this, and with this many relative to its rows, deserves a remark.
_MANY_VALUES, _MANY_FOR_ROWS = 100, 0.05


class ColumnReading(TypedDict):
    """One column: its name, the kind it was read as (empty if it was left out), and any remarks."""

    column: str
    read: str
    note: str


class TableReading(TypedDict):
    """All columns, and the remarks about the file."""

    columns: list[ColumnReading]
    notes: list[str]


def describe_reading(
    features: Features,
    rows: int,
    target: str,
    left_out: Sequence[tuple[str, str]],
    of: str = "",
    classes: Sequence[tuple[ClassName, int]] = (),
) -> TableReading:
    """Describe how everything was read.

    Args:
        features: the features of the dataset, with the findings of reading it leniently.
        rows: the number of rows.
        target: the column to predict.
        left_out: columns that are not learned from, and why.
        of: which rows these are, if not all of them: `training rows`.
        classes: the classes of the target and how many rows each has, the most frequent first; none for numbers.
    """
    found = features.found
    gone = {name for name, _ in left_out}
    columns = [_describe(one, rows, found, of) for one in features.values() if one.name not in gone]
    how = found.get("how", {}).get(target)
    columns.append(
        {
            "column": target,
            "read": "classes" if classes else how or "as it is",
            "note": _join(
                _describe_target(classes, of),
                _describe_bad_cells(target, found),
                _describe_words(target, found),
            ),
        }
    )
    columns += [{"column": name, "read": "", "note": why} for name, why in left_out]
    notes = list(found.get("notes", ()))
    if found.get("unlabelled"):
        notes.append(f"{quantity(found['unlabelled'], 'row')} without a value in {target!r} left out")
    return {"columns": columns, "notes": notes}


def _describe_target(classes: Sequence[tuple[ClassName, int]], of: str) -> str:
    if not classes:
        return "the target"
    shown = [f"{_shorten(str(name))} {count:,}" for name, count in classes[:_CLASSES_SHOWN]]
    more = f" and {len(classes) - len(shown):,} more" if len(classes) > len(shown) else ""
    return f"the target: {len(classes):,} classes{f' in the {of}' if of else ''}, {', '.join(shown)}{more}"


def _describe(feature: Feature, rows: int, found: Mapping[str, Any], of: str) -> ColumnReading:
    how = found.get("how", {}).get(feature.name, "")
    read, note = _KINDS.get(feature.kind, feature.kind), ""
    if feature.kind in ("category", "text"):
        note = how
    elif how:
        read = how
    if feature.kind == "category":
        different = sum(word != "" for word in (feature.vocabulary or ())[1:])
        read = f"category, {quantity(different, 'value')}{f' in the {of}' if of else ''}"
        if different > max(_MANY_VALUES, _MANY_FOR_ROWS * rows) and not note:
            note = f"many values for {rows:,} rows"
    # Counted while the file was read, before rows were divided.
    gaps = feature.missing + found.get("blank", {}).get(feature.name, 0)
    missing = f"{gaps:,} missing{' in all rows' if of else ''}" if gaps else ""
    return {
        "column": feature.name,
        "read": read,
        "note": _join(
            note, missing, _describe_bad_cells(feature.name, found), _describe_words(feature.name, found)
        ),
    }


def _describe_words(name: str, found: Mapping[str, Any]) -> str:
    """Describe the words of a category that were written in several ways."""
    merged: Sequence[Sequence[str]] = found.get("merged", {}).get(name, ())
    shown = [f"{_shorten(word)!r} read as {_shorten(usual)!r}" for word, usual in merged[:_SHOWN]]
    shown += [f"{len(merged) - _SHOWN:,} more alike"] if len(merged) > _SHOWN else []
    if count := found.get("trimmed", {}).get(name):
        shown.append(f"spaces around {quantity(count, 'cell')} removed")
    return ", ".join(shown)


def _describe_bad_cells(name: str, found: Mapping[str, Any]) -> str:
    """Describe the cells that could not be read."""
    count = found.get("bad", {}).get(name)
    if not count:
        return ""
    shown = ", ".join(f"{_shorten(text)!r} in row {row:,}" for row, text in found["shown"].get(name, ()))
    return f"{quantity(count, 'unreadable cell')} taken as missing: {shown}"


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def print_reading(reading: TableReading) -> None:
    """Show the columns as a table."""
    columns = reading["columns"]
    listed = columns if len(columns) <= _MOST_LISTED else [one for one in columns if one["note"]]
    name_width = min(_WIDEST, max(len(one["column"]) for one in columns))
    read_width = max((len(_describe_kind(one)) for one in listed), default=0)
    for one in listed:
        name = _shorten(one["column"])
        say(f"  {name:<{name_width}}  {_describe_kind(one):<{read_width}}  {one['note']}".rstrip())
    if len(listed) < len(columns):
        say(f"  and {quantity(len(columns) - len(listed), 'more column')}")
    for note in reading["notes"]:
        say(f"  {note}")


def _describe_kind(one: ColumnReading) -> str:
    return one["read"] or "left out"
