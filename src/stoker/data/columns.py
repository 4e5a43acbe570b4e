"""The columns of a table: their kinds, and how the store keeps them.

| kind     | in the file                       | kept as                                   |
|----------|-----------------------------------|-------------------------------------------|
| number   | floating point, decimals          | float32, or float64 where float32 is too small |
| whole    | whole numbers                     | int64; float64 with NaN where values are missing |
| truth    | true and false                    | float32: 1, 0, NaN for missing            |
| category | text with few different values    | int32 codes into a list of values, -1 for missing |
| text     | text with many different values   | its characters, and where each row ends   |
| date     | dates and times                   | int64 in `unit` since 1970; float64 with NaN as above |
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from stoker.errors import ArgumentError, find_nearest

if TYPE_CHECKING:
    from stoker.data.store import Store

KINDS = ("number", "whole", "truth", "category", "text", "date")
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
# A column of text with more different values than this is not a category.
MOST_CATEGORIES = 200_000
# Stands in place of a reading if a value does not fit the column, so that how its cells are written is guessed again.
GUESS = "?"
# Whole numbers up to this one are exact as float64.
EXACT = 2**53


class DataWarning(UserWarning):
    """The data can be read, but the caller should know something about them."""


def warn_caller(message: str) -> None:
    """Warn about data at the line that called Stoker."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("stoker."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DataWarning, stacklevel=level)


class Widen(Exception):
    """A later value does not fit its column, so the pass begins again with this column instead."""

    def __init__(self, column: Column) -> None:
        super().__init__(column.name)
        self.column = column


class Restart(Exception):
    """The source must read its files in another way, so the pass begins again."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: the name in the file.
        kind: one of `KINDS`.
        missing: whether values may be missing (whole numbers are then kept as float64).
        wide: float64 instead of float32; characters as int32 instead of bytes.
        unit: for a date: "D", "s", "ms", "us" or "ns".
        zone: for a date: its time zone, if it has one.
        blank: whether all values were missing when the kind was inferred.
        asked: whether the caller gave the kind.
        doubt: why the inferred kind is probably wrong. The column is refused unless the caller gives its kind.
        note: a warning about how the kind was inferred.
        reading: how its cells, which come as text, are read: the JSON of a `CellReading`; empty if Arrow reads them.
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
    # The repr, which is part of the cache's key, leaves this out, so that new wording does not invalidate a cache.
    note: str = field(default="", repr=False)
    reading: str = field(default="", repr=False)

    @property
    def dtype(self) -> str:
        """The dtype of the array that keeps it; empty for text, which is kept in separate arrays."""
        if self.needs_gaps:
            return "float64" if self.missing else "int64"
        if self.kind == "category":
            return "int32"
        if self.kind == "text":
            return ""
        return "float64" if self.wide else "float32"

    @property
    def needs_gaps(self) -> bool:
        """Whether missing values need another dtype: int64 has no value for them."""
        return self.kind in ("whole", "date")

    @property
    def arrow(self) -> pa.DataType:
        """The type that the column must have in a block."""
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
        """Return the same column as another kind."""
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
            reading=self.reading if same else "",
        )


def from_store(store: Store) -> list[Column]:
    """Return the columns of a store."""
    return [Column(**fields) for fields in store.meta["columns"]]


def from_arrow(name: str, sample: pa.Array) -> Column:
    """Return the column that a sample of its values suggests.

    Raises:
        ArgumentError: the values have a type that fits no tensor, such as lists.
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
        return Column(name, _kind_of_strings(sample.cast(pa.string())))
    raise ArgumentError(
        f"column {name} holds {kind}, which does not fit a table of numbers and text: "
        "name the columns you want with columns=[...]"
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _kind_of_strings(sample: pa.Array) -> str:
    """Return text if there are very many different values, or long ones that hardly repeat; otherwise category."""
    import pyarrow.compute as pc

    if len(sample) == 0:
        return "category"
    different = pc.count_distinct(sample).as_py()
    length = pc.mean(pc.utf8_length(sample)).as_py() or 0
    is_text = different > MOST_CATEGORIES or (different > len(sample) / 2 and length >= 30)
    return "text" if is_text else "category"


def apply_types(columns: Iterable[Column], types: dict[str, str] | None) -> list[Column]:
    """Return the columns with the kinds that the caller gave."""
    known = list(columns)
    for name, kind in (types or {}).items():
        check_known([column.name for column in known], name, "types")
        if kind not in KINDS:
            raise ArgumentError(f"types: {name}={kind!r} must be one of {', '.join(KINDS)}")
    return [_change_kind(column, (types or {}).get(column.name)) for column in known]


def _change_kind(column: Column, kind: str | None) -> Column:
    if kind is None or column.asked:
        return column
    changed = column.as_kind(kind)
    return replace(changed, asked=True, unit="s" if kind == "date" and not changed.unit else changed.unit)


def check_different(names: Sequence[str], where: str) -> None:
    """Check that no two columns have the same name.

    Raises:
        ArgumentError: two columns have the same name.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ArgumentError(f"{where} has two columns called {twice[0]!r}: rename one")


def check_known(names: Sequence[str], wanted: str, argument: str) -> None:
    """Check that there is a column of that name.

    Raises:
        ArgumentError: there is no such column; the message suggests the nearest name.
    """
    if wanted in names:
        return
    near = find_nearest(wanted, names, least_alike=0.5)
    if near:
        hint = f"did you mean {near!r}?"
    else:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        hint = f"the columns are {shown}"
    raise ArgumentError(f"{argument}: there is no column {wanted!r}; {hint}")
