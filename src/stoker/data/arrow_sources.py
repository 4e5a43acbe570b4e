"""Sources that are Arrow already or become it a block at a time: Parquet, frames, SQL queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stoker.data import cache
from stoker.data.columns import Column, demand_different, from_arrow
from stoker.data.frames import to_arrow
from stoker.data.misfits import conform, from_python
from stoker.data.odd_cells import without
from stoker.data.paths import spoken
from stoker.errors import ArgumentError

_ROWS = 1 << 16
# Enough to tell a category from text; types are in the file.
_SAMPLE_ROWS = 1 << 13


def conform_blocks(
    blocks: Iterator[Any], columns: list[Column], where: str, missing: tuple[str, ...], row: int = 0
) -> Iterator[pa.RecordBatch]:
    """Blocks of a source, cast to what the columns want, without the texts that stand for missing values."""
    for block in blocks:
        values = [
            conform(column, without(block.column(column.name), missing), where, row) for column in columns
        ]
        yield pa.RecordBatch.from_arrays(values, [column.name for column in columns])
        row += len(block)


class ParquetFiles:
    """Parquet files with the same columns.

    Args:
        paths: the files.
        missing: texts that stand for missing values.
    """

    def __init__(self, paths: list[Path], missing: tuple[str, ...] = ()) -> None:
        self.paths, self._missing = paths, missing
        self.name = spoken(paths)

    def fingerprint(self) -> list[Any]:
        return [cache.state_of(path) for path in self.paths]

    def columns(self) -> list[Column]:
        with _plainly(self.paths[0], "Parquet"), pq.ParquetFile(self.paths[0], memory_map=True) as file:
            schema, gaps = file.schema_arrow, _columns_with_gaps(file.metadata)
            demand_different(schema.names, str(self.paths[0]))
            sample = next(file.iter_batches(_SAMPLE_ROWS), None)
        if sample is None:
            sample = pa.RecordBatch.from_pylist([], schema=schema)
        found = [describe(name, without(sample.column(name), self._missing)) for name in schema.names]
        # Known from the file's own books: a gap that is met later would begin the pass again.
        return [replace(one, missing=True) if one.name in gaps and one.needs_gaps else one for one in found]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in columns]
        for path in self.paths:
            with _plainly(path, "Parquet"):
                file = pq.ParquetFile(path, memory_map=True, read_dictionary=_texts(path, columns))
            with file:
                lost = [name for name in names if name not in file.schema_arrow.names]
                if lost:
                    raise ArgumentError(f"{path} has no column {lost[0]!r}, which {self.paths[0]} has")
                yield from self._of(file, path, columns)

    def _of(self, file: Any, path: Path, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in columns]
        row = 0
        blocks = file.iter_batches(_ROWS, columns=names)
        while True:
            with _plainly(path, "Parquet"):
                block = next(blocks, None)
            if block is None:
                return
            given = [without(block.column(column.name), self._missing) for column in columns]
            values = [
                one if one.type == column.arrow else conform(column, one, str(path), row)
                for column, one in zip(columns, given, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(values, names)
            row += len(block)


def _columns_with_gaps(metadata: Any) -> set[str]:
    """The columns in which values are missing, as far as the file tells."""
    found: set[str] = set()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            known = column.statistics
            if known is not None and known.has_null_count and known.null_count:
                found.add(column.path_in_schema)
    return found


def _texts(path: Path, columns: list[Column]) -> list[str]:
    """The categories that are text in this file: they are read as codes."""
    kinds = {field.name: field.type for field in pq.read_schema(path)}
    return [c.name for c in columns if c.kind == "category" and kinds.get(c.name) == pa.string()]


class Frame:
    """A frame in memory; see `frames.to_arrow`."""

    def __init__(self, data: Any, missing: tuple[str, ...] = ()) -> None:
        self.name, self._missing = f"the {type(data).__name__}", missing
        self.table, self._unfit = to_arrow(data, missing)

    def fingerprint(self) -> None:
        return None

    def columns(self) -> list[Column]:
        sample = self.table.slice(0, _ROWS)
        names = self.table.schema.names
        return [
            Unfit(name, "text", reason=self._unfit[name])
            if name in self._unfit
            else describe(name, without(sample.column(name).combine_chunks(), self._missing))
            for name in names
        ]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        yield from conform_blocks(iter(self.table.to_batches(_ROWS)), columns, self.name, self._missing)


class Query:
    """The rows of a SQL query, fetched a block at a time.

    Args:
        connect: opens the query anew: column names, and a function that fetches so many rows.
        name: of the query, for messages.
        missing: texts that stand for missing values.
    """

    def __init__(self, connect: Any, name: str, missing: tuple[str, ...] = ()) -> None:
        self._connect, self.name, self._missing = connect, name, missing

    def fingerprint(self) -> None:
        return None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self._connect() as (names, fetch):
            row = 0
            while rows := fetch(_ROWS):
                values = [
                    from_python(column, name, self.name, row, self._missing)
                    for name, column in zip(names, zip(*rows, strict=True), strict=True)
                ]
                yield pa.RecordBatch.from_arrays(values, names)
                row += len(rows)

    def columns(self) -> list[Column]:
        sample = next(self._batches(), None)
        if sample is None:
            raise ArgumentError(f"{self.name} has no rows")
        demand_different(sample.schema.names, self.name)
        return [describe(name, sample.column(name)) for name in sample.schema.names]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        yield from conform_blocks(self._batches(), columns, self.name, ())


def describe(name: str, sample: Any) -> Column:
    """A column that fits no tensor is refused only if it is wanted."""
    try:
        return from_arrow(name, sample)
    except ArgumentError as error:
        return Unfit(name, "text", reason=str(error))


@dataclass(frozen=True)
class Unfit(Column):
    """A column that cannot be read."""

    reason: str = ""


@contextmanager
def _plainly(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise ArgumentError(f"{path} is not a complete {what} file: {first}") from None
