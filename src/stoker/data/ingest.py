"""One pass over a source: its blocks, turned into typed arrays and appended to a store.

Columns of one type stand side by side in one array, so that a batch takes one gather for all of them. What a later
block shows (a missing value in a column of whole numbers, a number that float32 cannot hold) widens the column, and
the pass begins again; what no widening can repair is said in one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stoker.data import cache
from stoker.data.columns import EXACT, MOST_CATEGORIES, Column, Restart, Widen
from stoker.data.store import Store, Writer
from stoker.errors import ArgumentError

_DTYPES = {
    pa.float64(): np.float64,
    pa.float32(): np.float32,
    pa.int64(): np.int64,
    pa.int32(): np.int32,
}


class Source(Protocol):
    """Where the rows of a table come from."""

    name: str

    def columns(self) -> list[Column]:
        """What the source holds, from a look at its beginning."""

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        """All rows: these columns, each with the type `Column.arrow`.

        Raises:
            Widen: a value does not fit its column, but fits a wider one.
            Restart: the rows must be read in another way, from the beginning.
            ArgumentError: it fits none.
        """

    def fingerprint(self) -> list[Any] | None:
        """For each file its path and what changes when it does, as JSON; None where nothing tells."""


def ingest(source: Source, columns: list[Column], writer: Callable[[], Writer]) -> Store:
    """Read everything, with the columns widened as the values ask for.

    Args:
        source: what to read.
        columns: as inferred or asked for.
        writer: makes a fresh, empty one for every pass.

    Raises:
        ArgumentError: a value that fits no column; no rows.
        OSError: the store cannot be written.
    """
    while True:
        current = writer()
        try:
            return _Pass(source, columns, current).run()
        except Restart:
            continue
        except UnicodeDecodeError:
            raise ArgumentError(
                f"{source.name} holds text that is not UTF-8: write it anew as UTF-8"
            ) from None
        except Widen as wider:
            columns = [wider.column if one.name == wider.column.name else one for one in columns]
        finally:
            current.close()


def stored(source: Source, columns: list[Column], reading: list[Any], where: Any) -> Store:
    """The store of a source: from the cache, or read now.

    Args:
        source: what to read.
        columns: as inferred or asked for.
        reading: everything the caller said that decides on the values. The cache holds one state for each such choice.
        where: see `cache.cached`.
    """
    key, state = identity(source, columns, reading)
    return cache.cached(lambda writer: ingest(source, columns, writer), key, state, where)


def identity(source: Source, columns: list[Column], reading: list[Any]) -> tuple[list[Any], list[Any] | None]:
    """What the cache knows a source by, and what changes when its files do; the latter is None where nothing tells."""
    state = source.fingerprint()
    files = [one[0] for one in state or ()]
    key = [type(source).__name__, files, reading, [column.name for column in columns]]
    return key, None if state is None else [state, [repr(column) for column in columns]]


class _Pass:
    def __init__(self, source: Source, columns: list[Column], writer: Writer) -> None:
        self.source, self.columns, self.writer = source, columns, writer
        self.rows = 0
        self.missing = dict.fromkeys((column.name for column in columns), 0)
        self.largest = dict.fromkeys((column.name for column in columns if column.missing), 0.0)
        self.values: dict[str, Any] = {}
        self.begins: dict[str, int] = {}

    def run(self) -> Store:
        for block in self.source.blocks(self.columns):
            if len(block):
                self._add(block)
                self.rows += len(block)
        if self.rows == 0:
            raise ArgumentError(f"{self.source.name} has no rows")
        return self.writer.finish(
            {
                "rows": self.rows,
                "columns": [asdict(column) for column in self.columns],
                "missing": self.missing,
                "largest": self.largest,
                "values": {name: values.to_pylist() for name, values in self.values.items()},
            }
        )

    def _add(self, block: pa.RecordBatch) -> None:
        groups: dict[str, list[Any]] = {}
        for number, column in enumerate(self.columns):
            values = block.column(number)
            self.missing[column.name] += values.null_count
            if column.kind == "text":
                self._add_text(number, column, values)
            else:
                groups.setdefault(column.dtype, []).append(self._numbers(column, values))
        for dtype, parts in groups.items():
            matrix: Any = np.empty((len(block), len(parts)), dtype)
            for index, part in enumerate(parts):
                matrix[:, index] = part
            self.writer.append(dtype, matrix)

    def _numbers(self, column: Column, values: Any) -> Any:
        if column.kind == "category":
            return self._codes(column, values)
        if column.kind == "number":
            return self._floats(column, values)
        if column.kind == "truth":
            return view(values.cast(pa.uint8()).cast(pa.float32()), np.nan)
        if values.null_count and not column.missing:
            raise Widen(replace(column, missing=True))
        whole = values.cast(pa.int32()).cast(pa.int64()) if column.unit == "D" else values.cast(pa.int64())
        if column.missing:
            self._exact(column, whole)
            return view(whole.cast(pa.float64()), np.nan)
        return view(whole)

    def _floats(self, column: Column, values: Any) -> Any:
        numbers = view(values, np.nan)
        # What a file calls "not a number" is as missing as what is not there.
        self.missing[column.name] += int(np.isnan(numbers).sum()) - values.null_count
        if column.wide:
            return numbers
        try:
            with np.errstate(over="raise"):
                single = numbers.astype(np.float32)
        except FloatingPointError:
            raise Widen(replace(column, wide=True)) from None
        # Nor may numbers that are so small that nothing would be left of them become zeros.
        if not single.any() and numbers.any():
            raise Widen(replace(column, wide=True))
        return single

    def _exact(self, column: Column, whole: Any) -> None:
        """Where values are missing, whole numbers are kept as float64: they must be exact there."""
        ends = pc.min_max(whole)
        largest = max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0))
        if largest > EXACT:
            raise ArgumentError(
                f"column {column.name} of {self.source.name} has missing values and whole numbers such as {largest}, "
                f"beyond 2**53, which would be rounded: fill the gaps, or read it with "
                f"types={{{column.name!r}: 'category'}}"
            )
        self.largest[column.name] = max(self.largest[column.name], float(largest))

    def _codes(self, column: Column, values: Any) -> Any:
        """Codes into the list of all values: every block has a list of its own."""
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        own = values.dictionary.cast(pa.string())
        known = self.values.setdefault(column.name, own.slice(0, 0))
        where = pc.index_in(own, value_set=known)
        if where.null_count:
            new = own.filter(pc.and_(where.is_null(), own.is_valid())).unique()
            known = self.values[column.name] = pa.concat_arrays([known, new])
            if len(known) > MOST_CATEGORIES:
                if column.asked:
                    raise ArgumentError(
                        f"column {column.name} of {self.source.name} has more than {MOST_CATEGORIES:,} different "
                        f"values: read it with types={{{column.name!r}: 'text'}}"
                    )
                raise Widen(column.as_kind("text"))
            where = pc.index_in(own, value_set=known)
        table: Any = np.append(view(where, -1), np.int32(-1))
        return table[view(values.indices.cast(pa.int32()), len(own))]

    def _add_text(self, number: int, column: Column, values: Any) -> None:
        """The characters one after the other, and where each row ends."""
        data, ends = characters(values)
        if not column.wide and data.dtype != np.uint8:
            raise Widen(replace(column, wide=True))
        begin = self.begins.get(column.name)
        if begin is None:
            begin = 0
            self.writer.append(f"ends-{number}", np.zeros(1, np.int64))
        self.writer.append(f"ends-{number}", ends + begin)
        self.writer.append(f"text-{number}", data.astype(np.int32) if column.wide else data)
        self.begins[column.name] = begin + int(ends[-1])


def view(values: Any, gap: float = 0) -> Any:
    """An Arrow array of numbers as NumPy sees it, with `gap` for what is missing.

    Arrow's own ways (`to_numpy`, and a Python value for `fill_null`) import pandas first, which takes a second.
    """
    dtype = np.dtype(_DTYPES[values.type])
    if values.null_count:
        filler = pa.py_buffer(np.array([gap], dtype).tobytes())
        values = values.fill_null(pa.Array.from_buffers(values.type, 1, [None, filler])[0])
    return np.frombuffer(values.buffers()[1], dtype)[values.offset : values.offset + len(values)]


def characters(values: Any) -> tuple[Any, Any]:
    """The code points of all strings and the end of each: one byte each where all are below 256, int32 otherwise."""
    values = values.cast(pa.large_string()).fill_null("")
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    buffer = values.buffers()[2]
    raw = (
        np.frombuffer(buffer, np.uint8)[offsets[0] : offsets[-1]]
        if buffer is not None
        else np.empty(0, np.uint8)
    )
    ends = offsets[1:] - offsets[0]
    if not len(raw) or raw.max() < 128:
        return raw, ends
    first = np.concatenate([[0], np.cumsum((raw & 0xC0) != 0x80)])
    points = np.frombuffer(raw.tobytes().decode("utf-8").encode("utf-32-le"), np.int32)
    return (points.astype(np.uint8) if points.max() < 256 else points), first[ends]
