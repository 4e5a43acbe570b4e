"""Sources that are Arrow already or become it a block at a time: Parquet, JSON lines, frames, SQL queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson
import pyarrow.parquet as pq

from stoker.data import cache
from stoker.data.columns import Column, Restart, demand_different, from_arrow
from stoker.data.frames import to_arrow
from stoker.data.misfits import conform, from_python, refuse
from stoker.data.odd_cells import without
from stoker.data.paths import spoken, unreadable
from stoker.errors import ArgumentError

_ROWS = 1 << 16
# Enough to tell a category from text; types are in the file.
_SAMPLE_ROWS = 1 << 13
_JSON_BLOCK, _LARGEST_JSON_BLOCK = 1 << 22, 1 << 25
# Bytes in which it shows what a file of JSON begins with.
_JSON_START = 1 << 10


def _conformed(
    blocks: Iterator[Any], columns: list[Column], where: str, missing: tuple[str, ...], row: int = 0
) -> Iterator[pa.RecordBatch]:
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
        found = [_later(name, without(sample.column(name), self._missing)) for name in schema.names]
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


class JsonLines:
    """Files with one JSON object a line.

    Args:
        paths: the files.
        chosen: whether the caller named the columns.
        missing: texts that stand for missing values.
    """

    def __init__(self, paths: list[Path], chosen: bool, missing: tuple[str, ...] = ()) -> None:
        self.paths, self._missing = paths, missing
        self.name = spoken(paths)
        # Without a choice of columns, one that turns up late must not be lost in silence.
        self._strict = not chosen
        self._block = _JSON_BLOCK

    def fingerprint(self) -> list[Any]:
        return [cache.state_of(path) for path in self.paths]

    def columns(self) -> list[Column]:
        path = self.paths[0]
        try:
            reader = pajson.open_json(str(path), pajson.ReadOptions(block_size=self._block))
            sample = next(iter(reader), None)
        except pa.ArrowInvalid as error:
            message = str(error).splitlines()[0]
            if "straddling object" in message:
                self._enlarge_blocks(path)
                return self.columns()
            if "Empty JSON" in message:
                raise ArgumentError(f"{path} has no rows") from None
            if found := re.search(r"Column\(/(.*?)\) changed from (\S+) to (\S+) in row (\d+)", message):
                name, before, after, row = found.groups()
                raise ArgumentError(
                    f"{path}, row {int(row) + 1:,}: column {name} changes from {before} to {after}: make them alike"
                ) from None
            raise _no_object(path, message) from None
        except OSError as error:
            raise unreadable(path, error) from None
        if sample is None:
            raise ArgumentError(f"{path} has no rows")
        found = [_later(name, without(sample.column(name), self._missing)) for name in sample.schema.names]
        return [replace(one, doubt=self._too_large(path, one, sample.column(one.name))) for one in found]

    def _too_large(self, path: Path, column: Column, sample: Any) -> str:
        """Whole numbers that only fit a float, which would round them."""
        if not pa.types.is_floating(sample.type) or (pc.max(pc.abs(sample)).as_py() or 0) < 2.0**63:
            return ""
        value, row = self._misfit(path, replace(column, kind="whole"))
        if not isinstance(value, int):
            return ""
        return (
            f"{path}, row {row:,}: {value} in column {column.name} is too large for int64: write it as text, or read "
            f"it with types={{{column.name!r}: 'number'}} (rounded)"
        )

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        fields = [(c.name, pa.string() if c.kind == "category" else c.arrow) for c in columns]
        options = pajson.ParseOptions(
            explicit_schema=pa.schema(fields),
            unexpected_field_behavior="error" if self._strict else "ignore",
        )
        for path in self.paths:
            reading = pajson.ReadOptions(block_size=self._block)
            blocks: Any = None
            while True:
                try:
                    blocks = blocks or iter(pajson.open_json(str(path), reading, options))
                    block = next(blocks, None)
                except pa.ArrowInvalid as error:
                    raise self._spoken(path, columns, str(error)) from None
                except OSError as error:
                    raise unreadable(path, error) from None
                if block is None:
                    break
                yield from _conformed(iter([block]), columns, str(path), self._missing)

    def _enlarge_blocks(self, path: Path) -> None:
        """Read larger blocks from now on: a row must fit into one."""
        self._block *= 8
        if self._block > _LARGEST_JSON_BLOCK:
            raise ArgumentError(f"{path} has a row longer than {_LARGEST_JSON_BLOCK >> 20} MB")

    def _spoken(self, path: Path, columns: list[Column], message: str) -> Exception:
        if "straddling object" in message:
            self._enlarge_blocks(path)
            return Restart()
        if "unexpected field" in message:
            return ArgumentError(
                f"{path}: {message.splitlines()[0]}: a field that the first rows do not have; "
                "name the columns you want with columns=[...]"
            )
        if found := re.search(r"Column\(/(.*?)\) (?:changed from|was specified|type|has changed)", message):
            column = next((c for c in columns if c.name == found.group(1)), None)
            if column is not None:
                value, row = self._misfit(path, column)
                return refuse(column, value, str(path), row)
        if re.search(r"Failed (?:to convert|of conversion of) JSON to", message):
            for column in columns:
                value, row = self._misfit(path, column)
                if row is not None:
                    return refuse(column, value, str(path), row)
        return _no_object(path, message.splitlines()[0])

    def _misfit(self, path: Path, column: Column) -> tuple[Any, int | None]:
        """The first value that does not fit, read again as Python sees it."""
        import gzip
        import json

        opened = gzip.open if path.name.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                value = json.loads(line).get(column.name) if line.strip() else None
                if value is not None and not _fits(column, value):
                    return value, number
        return None, None


def _no_object(path: Path, message: str) -> ArgumentError:
    """What to say of a file that is no JSON lines."""
    with pa.input_stream(str(path)) as file:
        start = file.read(_JSON_START).lstrip()
    if start[:1] == b"[":
        return ArgumentError(
            f"{path} holds a JSON array: JSON lines are expected, one object a line; convert it, for instance with "
            f"jq -c '.[]' {path.name} > {path.name.split('.')[0]}.jsonl"
        )
    found = re.fullmatch(r"JSON parse error: (.*?)\.?(?: in row (\d+))?", message)
    why, row = found.groups() if found else (message, None)
    place = f"{path}, row {int(row) + 1:,}" if row else str(path)
    return ArgumentError(
        f'{place} cannot be read as JSON ({why}): one object a line is expected, such as {{"a": 1}}'
    )


def _fits(column: Column, value: Any) -> bool:
    if column.kind == "whole":
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if column.kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, bool) if column.kind == "truth" else isinstance(value, str)


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
            else _later(name, without(sample.column(name).combine_chunks(), self._missing))
            for name in names
        ]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        yield from _conformed(iter(self.table.to_batches(_ROWS)), columns, self.name, self._missing)


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
        return [_later(name, sample.column(name)) for name in sample.schema.names]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        yield from _conformed(self._batches(), columns, self.name, ())


def _later(name: str, sample: Any) -> Column:
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
        raise ArgumentError(f"{path} is no whole {what} file: {first}") from None
