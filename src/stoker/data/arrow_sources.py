"""Sources that hold Arrow data, or are converted to it block by block: Parquet files, frames, SQL queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stoker.data.columns import Column, check_different, from_arrow
from stoker.data.frames import ColumnHolder, to_arrow
from stoker.data.ingest import FileSource
from stoker.data.misfits import conform, convert_from_python
from stoker.data.odd_cells import replace_missing
from stoker.errors import ArgumentError, first_line
from stoker.storage import arriving

_ROWS = 1 << 16
# Enough rows to tell a category from text; the file itself has the types.
_SAMPLE_ROWS = 1 << 13


# The names of a query's columns, and a function that fetches the given number of rows.
QueryRows = tuple[list[str], Callable[[int], list[tuple[object, ...]]]]


def conform_blocks(
    blocks: Iterator[pa.RecordBatch],
    columns: list[Column],
    where: str,
    missing: tuple[str, ...],
    *,
    keep_codes: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the blocks of a source, cast to the types of the columns, with null for texts that mean missing values.

    Args:
        blocks: the blocks of the source.
        columns: the wanted columns.
        where: the file, frame or query, for messages.
        missing: texts that stand for missing values.
        keep_codes: keep categories that are already encoded. Those of a frame may include values that no row has.
    """
    row = 0
    for block in blocks:
        given = [replace_missing(block.column(column.name), missing) for column in columns]
        values = [
            one if keep_codes and one.type == column.arrow else conform(column, one, where, row)
            for column, one in zip(columns, given, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(values, [column.name for column in columns])
        row += len(block)


class ParquetFiles(FileSource):
    """Parquet files with the same columns."""

    def columns(self) -> list[Column]:
        first = self._first()
        with _explain_errors(first), pq.ParquetFile(first, memory_map=True) as file:
            schema, gaps = file.schema_arrow, _find_columns_with_gaps(file.metadata)
            check_different(schema.names, str(first))
            sample = next(file.iter_batches(_SAMPLE_ROWS), None)
        if sample is None:
            sample = pa.RecordBatch.from_pylist([], schema=schema)
        found = [describe(name, replace_missing(sample.column(name), self._missing)) for name in schema.names]
        # The file's own statistics say where values are missing; a gap found later would restart the pass.
        return [replace(one, missing=True) if one.name in gaps and one.needs_gaps else one for one in found]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in columns]
        for path in arriving(self.paths):
            with _explain_errors(path):
                file = pq.ParquetFile(path, memory_map=True, read_dictionary=_texts(path, columns))
            with file:
                lost = [name for name in names if name not in file.schema_arrow.names]
                if lost:
                    raise ArgumentError(
                        f"{path} has no column {lost[0]!r}, but {self.paths[0]} has: give all files the same columns"
                    )
                blocks = _read_blocks(file.iter_batches(_ROWS, columns=names), path)
                yield from conform_blocks(blocks, columns, str(path), self._missing, keep_codes=True)


def _read_blocks(blocks: Iterator[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    while True:
        with _explain_errors(path):
            block = next(blocks, None)
        if block is None:
            return
        yield block


def _find_columns_with_gaps(metadata: pq.FileMetaData) -> set[str]:
    """Return the columns with missing values, according to the file's own statistics."""
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
    """Return the categories that this file holds as text; they are read as codes."""
    kinds = {field.name: field.type for field in pq.read_schema(path)}
    return [c.name for c in columns if c.kind == "category" and kinds.get(c.name) == pa.string()]


class FrameSource:
    """A frame in memory; see `frames.to_arrow`."""

    def __init__(self, data: ColumnHolder, missing: tuple[str, ...] = ()) -> None:
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
            else describe(name, replace_missing(sample.column(name).combine_chunks(), self._missing))
            for name in names
        ]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        yield from conform_blocks(iter(self.table.to_batches(_ROWS)), columns, self.name, self._missing)


class Query:
    """The rows of a SQL query, fetched a block at a time.

    Args:
        connect: runs the query again.
        name: the name of the query, for messages.
        missing: texts that stand for missing values.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[QueryRows]],
        name: str,
        missing: tuple[str, ...] = (),
    ) -> None:
        self._connect, self.name, self._missing = connect, name, missing

    def fingerprint(self) -> None:
        return None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self._connect() as (names, fetch):
            row = 0
            while rows := fetch(_ROWS):
                values = [
                    convert_from_python(column, name, self.name, row, self._missing)
                    for name, column in zip(names, zip(*rows, strict=True), strict=True)
                ]
                yield pa.RecordBatch.from_arrays(values, names)
                row += len(rows)

    def columns(self) -> list[Column]:
        sample = next(self._batches(), None)
        if sample is None:
            raise ArgumentError(f"{self.name} has no rows")
        check_different(sample.schema.names, self.name)
        return [describe(name, sample.column(name)) for name in sample.schema.names]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        yield from conform_blocks(self._batches(), columns, self.name, ())


def describe(name: str, sample: pa.Array) -> Column:
    """Return the column that a sample of its values suggests; one that fits no tensor is refused only if wanted."""
    try:
        return from_arrow(name, sample)
    except ArgumentError as error:
        return Unfit(name, "text", reason=str(error))


@dataclass(frozen=True)
class Unfit(Column):
    """A column that cannot be read, with the reason."""

    reason: str = ""


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        raise ArgumentError(f"{path} is not a complete Parquet file: {first_line(error)}") from None
