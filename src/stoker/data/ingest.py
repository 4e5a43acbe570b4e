"""Make one pass over a source: turn its blocks into typed arrays and append them to a store.

All columns of one type share one array, so that a batch takes one gather for all of them. A later block may hold a
value that does not fit its column (a missing value among whole numbers, a number too large for float32). Then the
column is widened and the pass begins again. If no widening helps, an error of one line says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stoker.data import cache
from stoker.data.array_types import Array
from stoker.data.columns import EXACT, MOST_CATEGORIES, Column, Restart, Widen
from stoker.data.paths import name_files
from stoker.data.store import Store, StoreMeta, Writer
from stoker.errors import ArgumentError
from stoker.storage import arriving

_DTYPES: dict[pa.DataType, type[np.generic]] = {
    pa.float64(): np.float64,
    pa.float32(): np.float32,
    pa.int64(): np.int64,
    pa.int32(): np.int32,
}
# The first and the largest size of blocks. A row must fit into a block of a text file, so blocks grow if needed.
BLOCK, LARGEST_BLOCK = 1 << 22, 1 << 25


class TableSource(Protocol):
    """The source of a table's rows."""

    name: str

    def columns(self) -> list[Column]:
        """Return the columns, inferred from the first rows."""

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        """Yield all rows: these columns, each with the type `Column.arrow`.

        Raises:
            Widen: a value does not fit its column, but fits a wider one.
            Restart: the rows must be read in another way, from the beginning.
            ArgumentError: a value fits no column.
        """

    def fingerprint(self) -> list[Any] | None:
        """Return, as JSON, each file's path and something that changes when the file does; None if nothing does."""


@runtime_checkable
class ReportingSource(Protocol):
    """A source that knows more about its rows after a pass."""

    def found(self) -> dict[str, Any]:
        """Return what the last pass found, as JSON; the store keeps it."""


class FileSource:
    """The base of all sources that read files.

    Args:
        paths: the files.
        missing: texts that stand for missing values.
    """

    def __init__(self, paths: list[Path], missing: tuple[str, ...] = ()) -> None:
        self.paths, self.name, self._missing = paths, name_files(paths), missing
        self._least_block = 0

    def _first(self) -> Path:
        """Return the first file, once it has arrived."""
        return next(arriving(self.paths))

    def fingerprint(self) -> list[Any]:
        return [cache.read_file_state(path) for path in self.paths]

    def _enlarge_blocks(self, path: Path, hint: str) -> Restart | ArgumentError:
        """Read larger blocks from now on. Return the error to raise for a row that did not fit into a block."""
        self._least_block = max(BLOCK, self._least_block) * 8
        if self._least_block <= LARGEST_BLOCK:
            return Restart()
        return ArgumentError(f"{path} has a row longer than {LARGEST_BLOCK >> 20} MB: {hint}")


def ingest(source: TableSource, columns: list[Column], writer: Callable[[], Writer]) -> Store:
    """Read everything, and widen a column when a value does not fit it.

    Args:
        source: what to read.
        columns: the columns, inferred or given by the caller.
        writer: makes an empty writer for every pass.

    Raises:
        ArgumentError: a value does not fit its column, or there are no rows.
        OSError: the store cannot be written.
    """
    while True:
        current = writer()
        try:
            return _Pass(source, columns, current).run()
        except Restart:
            continue
        except UnicodeDecodeError:
            raise ArgumentError(f"{source.name} holds text that is not UTF-8: save it as UTF-8") from None
        except Widen as wider:
            columns = [wider.column if one.name == wider.column.name else one for one in columns]
        finally:
            current.close()


def load_table(
    source: TableSource, columns: list[Column], reading: list[Any], where: cache.CachePlace
) -> Store:
    """Return the store of a source: from the cache, or read now.

    Args:
        source: what to read.
        columns: the columns, inferred or given by the caller.
        reading: every option that changes the values. The cache holds one store for each choice of options.
        where: see `cache.load_or_make`.
    """
    key, state = identity(source, columns, reading)
    return cache.load_or_make(lambda writer: ingest(source, columns, writer), key, state, where)


def identity(
    source: TableSource, columns: list[Column], reading: list[Any]
) -> tuple[list[Any], list[Any] | None]:
    """Return the cache key of a source, and a fingerprint that changes when its files do; None if it has none."""
    state = source.fingerprint()
    files = [one[0] for one in state or ()]
    key = [type(source).__name__, files, reading, [column.name for column in columns]]
    described = [repr(column) + column.reading for column in columns]
    return key, None if state is None else [state, described]


class _Pass:
    def __init__(self, source: TableSource, columns: list[Column], writer: Writer) -> None:
        self.source, self.columns, self.writer = source, columns, writer
        self.rows = 0
        self.missing = dict.fromkeys((column.name for column in columns), 0)
        self.largest = dict.fromkeys((column.name for column in columns if column.missing), 0.0)
        self.values: dict[str, pa.Array] = {}
        self.begins: dict[str, int] = {}

    def run(self) -> Store:
        for block in self.source.blocks(self.columns):
            if len(block):
                self._add(block)
                self.rows += len(block)
        if self.rows == 0:
            raise ArgumentError(f"{self.source.name} has no rows")
        meta: StoreMeta = {
            "rows": self.rows,
            "columns": [asdict(column) for column in self.columns],
            "missing": self.missing,
            "largest": self.largest,
            "values": {name: values.to_pylist() for name, values in self.values.items()},
        }
        if isinstance(self.source, ReportingSource):
            meta["found"] = self.source.found()
        return self.writer.finish(meta)

    def _add(self, block: pa.RecordBatch) -> None:
        groups: dict[str, list[Array]] = {}
        for number, column in enumerate(self.columns):
            values = block.column(number)
            self.missing[column.name] += values.null_count
            if column.kind == "text":
                self._add_text(number, column, values)
            else:
                groups.setdefault(column.dtype, []).append(self._numbers(column, values))
        for dtype, parts in groups.items():
            matrix = np.empty((len(block), len(parts)), dtype)
            for index, part in enumerate(parts):
                matrix[:, index] = part
            self.writer.append(dtype, matrix)

    def _numbers(self, column: Column, values: pa.Array) -> Array:
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
            self._check_exact(column, whole)
            return view(whole.cast(pa.float64()), np.nan)
        return view(whole)

    def _floats(self, column: Column, values: pa.Array) -> Array:
        numbers = view(values, np.nan)
        # NaN in the file counts as missing, too.
        self.missing[column.name] += int(np.isnan(numbers).sum()) - values.null_count
        if column.wide:
            return numbers
        try:
            with np.errstate(over="raise"):
                single = numbers.astype(np.float32)
        except FloatingPointError:
            raise Widen(replace(column, wide=True)) from None
        # Numbers too small for float32 must not become zeros.
        if not single.any() and numbers.any():
            raise Widen(replace(column, wide=True))
        return single

    def _check_exact(self, column: Column, whole: pa.Array) -> None:
        """Check whole numbers with missing values, which are kept as float64: it must not round them."""
        ends = pc.min_max(whole)
        largest = max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0))
        if largest > EXACT:
            raise ArgumentError(
                f"column {column.name} of {self.source.name} has missing values and whole numbers such as {largest}, "
                f"which would be rounded (they are beyond 2**53): fill the gaps, or read it with "
                f"types={{{column.name!r}: 'category'}}"
            )
        self.largest[column.name] = max(self.largest[column.name], float(largest))

    def _codes(self, column: Column, values: pa.Array) -> Array:
        """Turn a block's codes, which index its own list, into codes for the list of all values so far."""
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
        table = np.append(view(where, -1), np.int32(-1))
        return table[view(values.indices.cast(pa.int32()), len(own))]

    def _add_text(self, number: int, column: Column, values: pa.Array) -> None:
        """Append the characters of all rows, and where each row ends."""
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


def view(values: pa.Array, gap: float = 0) -> Array:
    """Return an Arrow array of numbers as NumPy sees it, with `gap` in place of missing values.

    Arrow's own ways (`to_numpy`, and `fill_null` with a Python value) import pandas first, which takes a second.
    """
    dtype = np.dtype(_DTYPES[values.type])
    if values.null_count:
        filler = pa.py_buffer(np.array([gap], dtype).tobytes())
        values = values.fill_null(pa.Array.from_buffers(values.type, 1, [None, filler])[0])
    return np.frombuffer(values.buffers()[1], dtype)[values.offset : values.offset + len(values)]


def characters(values: pa.Array) -> tuple[Array, Array]:
    """Return the code points of all strings (bytes if all are below 256, else int32), and where each string ends."""
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
