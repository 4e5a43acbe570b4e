"""Read files with one JSON object per line as blocks of Arrow columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from stoker.data.arrow_sources import conform_blocks, describe
from stoker.data.columns import GUESS, Column, Restart, Widen
from stoker.data.ingest import BLOCK, FileSource
from stoker.data.json_texts import JsonWithTexts
from stoker.data.misfits import refuse, widen
from stoker.data.odd_cells import replace_missing
from stoker.data.paths import explain_unreadable
from stoker.errors import ArgumentError, first_line
from stoker.storage import arriving

# The number of bytes that show what a JSON file begins with.
_START = 1 << 10
_SHORTEN = "shorten it, or leave it out"


class JsonLines(FileSource):
    """Files with one JSON object per line.

    Args:
        paths: the files.
        chosen: whether the caller named the columns.
        missing: texts that stand for missing values.
        lenient: read columns that hold both numbers and texts as text.
    """

    def __init__(
        self, paths: list[Path], chosen: bool, missing: tuple[str, ...] = (), lenient: bool = False
    ) -> None:
        super().__init__(paths, missing)
        self._lenient = lenient
        # The columns whose values are all read as text.
        self._texts: set[str] = set()
        # A column that first appears late must not be lost silently, unless the caller chose the columns.
        self._strict = not chosen

    def _make_read_options(self) -> pajson.ReadOptions:
        return pajson.ReadOptions(block_size=max(BLOCK, self._least_block))

    def _open(self, path: Path, options: pajson.ParseOptions | None = None) -> Iterator[pa.RecordBatch]:
        source: Any = JsonWithTexts(pa.input_stream(str(path)), self._texts) if self._texts else str(path)
        return iter(pajson.open_json(source, self._make_read_options(), options))

    def columns(self) -> list[Column]:
        path = self._first()
        try:
            sample = next(self._open(path), None)
        except pa.ArrowInvalid as error:
            message = first_line(error)
            if "straddling object" in message:
                if isinstance(longer := self._enlarge_blocks(path, _SHORTEN), ArgumentError):
                    raise longer from None
                return self.columns()
            if "Empty JSON" in message:
                raise ArgumentError(f"{path} has no rows") from None
            if found := re.search(r"Column\(/(.*?)\) changed from (\S+) to (\S+) in row (\d+)", message):
                name, before, after, row = found.groups()
                if self._lenient:
                    # A field of an object is named after it.
                    self._texts.add(name.partition("/")[0])
                    return self.columns()
                raise ArgumentError(
                    f"{path}, row {int(row) + 1:,}: column {name} changes from {before} to {after}: "
                    "make them the same type, or read it as text with lenient=True"
                ) from None
            raise _refuse_other_json(path, message) from None
        except OSError as error:
            raise explain_unreadable(path, error) from None
        if sample is None:
            raise ArgumentError(f"{path} has no rows")
        described = [
            describe(name, replace_missing(sample.column(name), self._missing))
            for name in sample.schema.names
        ]
        return [
            replace(one, doubt=self._explain_doubt(path, one, sample.column(one.name))) for one in described
        ]

    def _explain_doubt(self, path: Path, column: Column, sample: pa.Array) -> str:
        """Return the message that refuses whole numbers beyond int64, which floats would round; empty without any."""
        if not pa.types.is_floating(sample.type) or (pc.max(pc.abs(sample)).as_py() or 0) < 2.0**63:
            return ""
        value, row = self._find_misfit(path, replace(column, kind="whole"))
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
        for path in arriving(self.paths):
            blocks: Iterator[pa.RecordBatch] | None = None
            while True:
                try:
                    blocks = blocks or self._open(path, options)
                    block = next(blocks, None)
                except pa.ArrowInvalid as error:
                    raise self._explain(path, columns, str(error)) from None
                except OSError as error:
                    raise explain_unreadable(path, error) from None
                if block is None:
                    break
                yield from conform_blocks(iter([block]), columns, str(path), self._missing)

    def _explain(self, path: Path, columns: list[Column], message: str) -> Exception:
        if "straddling object" in message:
            return self._enlarge_blocks(path, _SHORTEN)
        if "unexpected field" in message:
            return ArgumentError(
                f"{path}: {first_line(message)}: the first rows do not have this field; "
                "name the columns you want with columns=[...]"
            )
        if found := re.search(r"Column\(/(.*?)\) (?:changed from|was specified|type|has changed)", message):
            column = next((c for c in columns if c.name == found.group(1)), None)
            if column is not None:
                value, row = self._find_misfit(path, column)
                return self._read_as_text(column, value) or refuse(column, value, str(path), row)
        if re.search(r"Failed (?:to convert|of conversion of) JSON to", message):
            for column in columns:
                value, row = self._find_misfit(path, column)
                if row is not None:
                    return self._read_as_text(column, value) or refuse(column, value, str(path), row)
        return _refuse_other_json(path, first_line(message))

    def _read_as_text(self, column: Column, value: object) -> Exception | None:
        """Read a column as text from now on because of a value that is of another type; None if it is read so."""
        if not self._lenient or column.name in self._texts or widen(column, value) is not None:
            return None
        self._texts.add(column.name)
        if column.kind in ("category", "text"):
            return Restart()
        return Widen(replace(column, reading=GUESS))

    def _find_misfit(self, path: Path, column: Column) -> tuple[object, int | None]:
        """Return the first value that does not fit, as Python reads it, and its row."""
        import gzip
        import json

        opened = gzip.open if path.name.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                value = json.loads(line).get(column.name) if line.strip() else None
                if value is not None and not _fits(column, value):
                    return value, number
        return None, None


def _refuse_other_json(path: Path, message: str) -> ArgumentError:
    """Return the error for a file that does not hold JSON lines."""
    with pa.input_stream(str(path)) as file:
        start = file.read(_START).lstrip()
    if start[:1] == b"[":
        return ArgumentError(
            f"{path} holds a JSON array, not JSON lines (one object per line): convert it, for instance with "
            f"jq -c '.[]' {path.name} > {path.name.split('.')[0]}.jsonl"
        )
    found = re.fullmatch(r"JSON parse error: (.*?)\.?(?: in row (\d+))?", message)
    why, row = found.groups() if found else (message, None)
    place = f"{path}, row {int(row) + 1:,}" if row else str(path)
    return ArgumentError(
        f'{place} cannot be read as JSON ({why}): write one object per line, such as {{"a": 1}}'
    )


def _fits(column: Column, value: object) -> bool:
    if column.kind == "whole":
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if column.kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, bool) if column.kind == "truth" else isinstance(value, str)
