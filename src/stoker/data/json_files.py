"""Files with one JSON object a line, as blocks of Arrow columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from stoker.data import cache
from stoker.data.arrow_sources import conform_blocks, describe
from stoker.data.columns import Column, Restart
from stoker.data.misfits import refuse
from stoker.data.odd_cells import without
from stoker.data.paths import spoken, unreadable
from stoker.errors import ArgumentError

# A row must fit into a block; blocks grow up to the second size.
_BLOCK, _LARGEST_BLOCK = 1 << 22, 1 << 25
# Bytes in which it shows what a file of JSON begins with.
_START = 1 << 10


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
        self._block = _BLOCK

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
                    f"{path}, row {int(row) + 1:,}: column {name} changes from {before} to {after}: "
                    "make them the same type"
                ) from None
            raise _no_object(path, message) from None
        except OSError as error:
            raise unreadable(path, error) from None
        if sample is None:
            raise ArgumentError(f"{path} has no rows")
        described = [
            describe(name, without(sample.column(name), self._missing)) for name in sample.schema.names
        ]
        return [replace(one, doubt=self._too_large(path, one, sample.column(one.name))) for one in described]

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
                yield from conform_blocks(iter([block]), columns, str(path), self._missing)

    def _enlarge_blocks(self, path: Path) -> None:
        """Read larger blocks from now on: a row must fit into one."""
        self._block *= 8
        if self._block > _LARGEST_BLOCK:
            raise ArgumentError(f"{path} has a row longer than {_LARGEST_BLOCK >> 20} MB")

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
        start = file.read(_START).lstrip()
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
