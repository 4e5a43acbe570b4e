"""Text as a source: a folder for each class with one text a file, files with one text a line, a column of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from stoker.data import cache
from stoker.data.arrow_sources import Unfit
from stoker.data.class_folders import class_files, state_of
from stoker.data.columns import Column, Widen, nearest
from stoker.data.ingest import Source
from stoker.data.paths import TEXTS, spoken, unreadable
from stoker.errors import ArgumentError

TEXT, CLASS = "text", "class"
_FILES = 1024
_LINES = 1 << 22


class Folders:
    """A folder for each class; a text is a whole file."""

    def __init__(self, root: Path, encoding: str) -> None:
        self.root, self.name, self._encoding = root, str(root), encoding
        self.files = class_files(root, TEXTS)

    def fingerprint(self) -> list[Any]:
        return [[str(self.root.resolve()), state_of(self.root, self.files)]]

    def columns(self) -> list[Column]:
        return [Column(TEXT, "text"), Column(CLASS, "category")]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(self.files), _FILES):
            part = self.files[first : first + _FILES]
            texts = [decoded(_content(file.path), self._encoding, file.path) for file in part]
            classes = pa.array([file.class_name for file in part])
            yield pa.RecordBatch.from_arrays([pa.array(texts), classes], [TEXT, CLASS])


class Lines:
    """Files with one text a line; there are no classes."""

    def __init__(self, paths: list[Path], encoding: str) -> None:
        self.paths, self._encoding = paths, encoding
        self.name = spoken(paths)

    def fingerprint(self) -> list[Any]:
        return [cache.state_of(path) for path in self.paths]

    def columns(self) -> list[Column]:
        return [Column(TEXT, "text")]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        for path in self.paths:
            with path.open(encoding=self._encoding) as file:
                try:
                    while lines := file.readlines(_LINES):
                        texts = pa.array([line.removesuffix("\n") for line in lines])
                        yield pa.RecordBatch.from_arrays([texts], [TEXT])
                except UnicodeDecodeError:
                    raise ArgumentError(_wrong(str(path), self._encoding)) from None


class TextColumn:
    """A column of a table, another one as its class, and perhaps one that the rows are divided by."""

    def __init__(self, table: Source, text: str, label: str | None, divider: str | None = None) -> None:
        self.name, self._table = table.name, table
        self._own = {TEXT: text} | ({} if label is None else {CLASS: label})
        found = {column.name: column for column in table.columns()}
        nearest(list(found), text, "column")
        if label is not None:
            nearest(list(found), label, "label")
        if divider is not None:
            nearest(list(found), divider, "group or time")
            if divider in (TEXT, CLASS, text, label):
                raise ArgumentError(f"texts cannot be divided by {divider!r}: use a column of another name")
            self._own[divider] = divider
        self._columns = [found[name] for name in self._own.values()]
        for column in self._columns:
            if isinstance(column, Unfit):
                raise ArgumentError(f"{self.name}: {column.reason}")

    def fingerprint(self) -> list[Any] | None:
        return self._table.fingerprint()

    def columns(self) -> list[Column]:
        text, *others = self._columns
        _, *names = self._own
        named = (replace(one, name=name) for name, one in zip(names, others, strict=True))
        return [replace(text.as_kind("text"), name=TEXT), *named]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        theirs = [replace(column, name=self._own[column.name]) for column in columns]
        try:
            for block in self._table.blocks(theirs):
                yield pa.RecordBatch.from_arrays(block.columns, list(self._own))
        except Widen as wider:
            ours = next(name for name, own in self._own.items() if own == wider.column.name)
            raise Widen(replace(wider.column, name=ours)) from None


def _content(path: str) -> bytes:
    # Making a `Path` of it would take as long as reading it.
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise unreadable(path, error) from None


def decoded(raw: bytes, encoding: str, path: str) -> str:
    """The text of a file.

    Raises:
        ArgumentError: it is in another encoding, or no text.
    """
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        raise ArgumentError(_wrong(path, encoding)) from None
    if "\0" in text:
        raise ArgumentError(_wrong(path, encoding))
    return text


def _wrong(path: str, encoding: str) -> str:
    return (
        f"{path} is not {encoding} text: if it is text at all, say its encoding, such as encoding='latin-1'"
    )
