"""The columns of a table: what each one is taken for, and how it is kept in the store.

| kind     | in the file                       | kept as                                   |
|----------|-----------------------------------|-------------------------------------------|
| number   | floating point, decimals          | float32, or float64 where float32 is too small |
| whole    | whole numbers                     | int64; float64 with NaN where values are missing |
| truth    | true and false                    | float32: 1, 0, NaN for missing            |
| category | text with few different values    | int32 codes into a list of values, -1 for missing |
| text     | text with many different values   | its characters and where each row begins  |
| date     | dates and times                   | int64 in `unit` since 1970; float64 with NaN as above |
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from stoker.errors import ArgumentError

KINDS = ("number", "whole", "truth", "category", "text", "date")
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
# More different values than this, and a column of text is no category.
MOST_CATEGORIES = 200_000
# Whole numbers up to here are exact as float64.
EXACT = 2**53


class DataWarning(UserWarning):
    """The data can be read, but something about it should be known."""


class Widen(Exception):
    """A later block shows that a column is kept too narrowly: the pass begins again with this column instead."""

    def __init__(self, column: Column) -> None:
        super().__init__(column.name)
        self.column = column


class Restart(Exception):
    """The source has learned how its files must be read: the pass begins again."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: as the file has it.
        kind: one of `KINDS`.
        missing: whether values may be missing (a whole number is then kept as float64).
        wide: float64 instead of float32; characters as int32 instead of one byte each.
        unit: of a date: "D", "s", "ms", "us" or "ns".
        zone: of a date: the time zone its values are given in, if they are.
        blank: nothing but missing values was seen when the kind was inferred.
        asked: the kind was given by the caller, not inferred.
        doubt: why what was inferred is likely wrong: it is refused unless the caller says that it is meant.
        note: what the caller should know of how it was inferred.
    """

    name: str
    kind: str
    missing: bool = False
    wide: bool = False
    unit: str = ""
    zone: str = ""
    blank: bool = False
    asked: bool = False
    doubt: str = ""
    # Caches are known by the columns' looks, and no wording may make them out of date.
    note: str = field(default="", repr=False)

    @property
    def dtype(self) -> str:
        """Of the array it is kept in; empty for text, which has files of its own."""
        if self.needs_gaps:
            return "float64" if self.missing else "int64"
        if self.kind == "category":
            return "int32"
        if self.kind == "text":
            return ""
        return "float64" if self.wide else "float32"

    @property
    def needs_gaps(self) -> bool:
        """Whether it must be known that values are missing: whole numbers and dates have none that says so."""
        return self.kind in ("whole", "date")

    @property
    def arrow(self) -> pa.DataType:
        """What the blocks must give for it."""
        if self.kind == "date":
            return pa.date32() if self.unit == "D" else pa.timestamp(self.unit, self.zone or None)
        return {
            "number": pa.float64(),
            "whole": pa.int64(),
            "truth": pa.bool_(),
            "category": DICTIONARY,
            "text": pa.string(),
        }[self.kind]

    def as_kind(self, kind: str) -> Column:
        """The same column taken for something else."""
        same = kind == self.kind
        return replace(
            self,
            kind=kind,
            unit=self.unit if same else "",
            zone=self.zone if same else "",
            wide=self.wide and same,
            blank=False,
            doubt="",
            note="",
        )


def from_arrow(name: str, sample: Any) -> Column:
    """The column a sample of its values speaks for.

    Raises:
        ArgumentError: values of a type that fits no tensor, such as lists.
    """
    kind = sample.type
    if pa.types.is_dictionary(kind) and _is_text(kind.value_type):
        return Column(name, "category")
    if pa.types.is_dictionary(kind) and pa.types.is_primitive(kind.value_type):
        return from_arrow(name, sample.cast(kind.value_type))
    if pa.types.is_boolean(kind):
        return Column(name, "truth")
    if pa.types.is_integer(kind):
        return Column(name, "whole", missing=sample.null_count > 0)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Column(name, "number")
    if pa.types.is_null(kind):
        return Column(name, "number", blank=True)
    if pa.types.is_date(kind):
        return Column(name, "date", unit="D", missing=sample.null_count > 0)
    if pa.types.is_timestamp(kind):
        return Column(name, "date", unit=kind.unit, zone=kind.tz or "", missing=sample.null_count > 0)
    if _is_text(kind):
        return Column(name, _of_strings(sample.cast(pa.string())))
    raise ArgumentError(
        f"column {name} holds {kind}, which does not fit a table of numbers and text: "
        f"name the columns you want with columns=[...]"
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _of_strings(sample: Any) -> str:
    """Category or text: sentences that hardly repeat are text, and so is what has too many different values."""
    import pyarrow.compute as pc

    if len(sample) == 0:
        return "category"
    different = pc.count_distinct(sample).as_py()
    length = pc.mean(pc.utf8_length(sample)).as_py() or 0
    return (
        "text"
        if different > MOST_CATEGORIES or (different > len(sample) / 2 and length >= 30)
        else "category"
    )


def with_types(columns: Iterable[Column], types: dict[str, str] | None) -> list[Column]:
    """The columns, with the kinds the caller gave."""
    known = list(columns)
    for name, kind in (types or {}).items():
        nearest([column.name for column in known], name, "types")
        if kind not in KINDS:
            raise ArgumentError(f"types: {name}={kind!r} is none of {', '.join(KINDS)}")
    return [
        replace(_asked(column, types[column.name]), asked=True) if types and column.name in types else column
        for column in known
    ]


def _asked(column: Column, kind: str) -> Column:
    changed = column.as_kind(kind)
    return replace(changed, unit="s") if kind == "date" and not changed.unit else changed


def demand_different(names: Sequence[str], where: str) -> None:
    """Raise unless each column has a name of its own.

    Raises:
        ArgumentError: two have the same.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ArgumentError(f"{where} has two columns called {twice[0]!r}: rename one")


def nearest(names: Sequence[str], wanted: str, argument: str) -> None:
    """Raise, naming the nearest, unless there is a column of that name.

    Raises:
        ArgumentError: there is none.
    """
    if wanted in names:
        return
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5) or difflib.get_close_matches(
        wanted.lower(), [name.lower() for name in names], n=1, cutoff=0.5
    )
    if close:
        real = next(name for name in names if name.lower() == close[0].lower())
        hint = f"did you mean {real!r}?"
    else:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        hint = f"there are {shown}"
    raise ArgumentError(f"{argument}: there is no column {wanted!r}; {hint}")
