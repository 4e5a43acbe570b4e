"""Sources of texts: a folder of files for each class, files with one text per line, or a column of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from stoker.data.arrow_sources import Unfit
from stoker.data.class_folders import class_files, read_folder_state
from stoker.data.columns import Column, Widen, check_known
from stoker.data.encodings import (
    LONGEST_MARK,
    check_encoding,
    decode,
    encoding_of,
    refuse_encoding,
    show_encoding,
)
from stoker.data.ingest import FileSource, TableSource
from stoker.data.paths import TEXTS, explain_unreadable
from stoker.errors import ArgumentError
from stoker.storage import arriving, origin_of

TEXT, CLASS = "text", "class"
_FILES = 1024
_LINES = 1 << 22


class Folders:
    """A folder for each class; every file is one text."""

    def __init__(self, root: Path, encoding: str) -> None:
        self.root, self.name, self._encoding = root, str(root), check_encoding(encoding)
        self.files = class_files(root, TEXTS)

    def fingerprint(self) -> list[Any]:
        return [[origin_of(self.root), read_folder_state(self.root, self.files)]]

    def columns(self) -> list[Column]:
        return [Column(TEXT, "text"), Column(CLASS, "category")]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(self.files), _FILES):
            part = self.files[first : first + _FILES]
            texts = [decode(_content(file.path), self._encoding) for file in part]
            if None in texts:
                raise self._refuse(part[texts.index(None)].path)
            classes = pa.array([file.class_name for file in part])
            yield pa.RecordBatch.from_arrays([pa.array(texts), classes], [TEXT, CLASS])

    def _refuse(self, first: str) -> ArgumentError:
        """Return the error for files that are not text in the encoding; the first of them is known."""
        total = len(self.files)
        count = sum(decode(_content(file.path), self._encoding) is None for file in self.files)
        given = show_encoding(self._encoding)
        if count == total:
            return refuse_encoding(
                first, self._encoding, f" (none of {total:,} files is)" if total > 1 else ""
            )
        where, what = ("is", "it") if count == 1 else ("are", "them")
        # If the others have only the characters that both encodings write alike, all may have the other.
        other = ", or give the encoding of all, such as encoding='latin-1'" if given == "UTF-8" else ""
        return ArgumentError(
            f"{first} is not {given} text ({count:,} of {total:,} files {where} not): save {what} as {given}{other}"
        )


class Lines(FileSource):
    """Files with one text per line, without classes."""

    def __init__(self, paths: list[Path], encoding: str) -> None:
        super().__init__(paths)
        self._encoding = check_encoding(encoding)

    def columns(self) -> list[Column]:
        return [Column(TEXT, "text")]

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        for path in arriving(self.paths):
            with path.open("rb") as file:
                beginning = file.read(LONGEST_MARK)
            with path.open(encoding=encoding_of(beginning, self._encoding)) as file:
                try:
                    while lines := file.readlines(_LINES):
                        texts = pa.array([line.removesuffix("\n") for line in lines])
                        yield pa.RecordBatch.from_arrays([texts], [TEXT])
                except UnicodeDecodeError:
                    raise refuse_encoding(str(path), self._encoding) from None


class TextColumn:
    """A column of a table, optionally with one for its classes and one that the rows are split by."""

    def __init__(self, table: TableSource, text: str, label: str | None, divider: str | None = None) -> None:
        self.name, self._table = table.name, table
        self._own = {TEXT: text} | ({} if label is None else {CLASS: label})
        found = {column.name: column for column in table.columns()}
        check_known(list(found), text, "column")
        if label is not None:
            check_known(list(found), label, "label")
        if divider is not None:
            check_known(list(found), divider, "group or time")
            if divider in (TEXT, CLASS, text, label):
                raise ArgumentError(f"texts cannot be split by {divider!r}: use a column with another name")
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
    # Making a `Path` from the string would take as long as reading the file.
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise explain_unreadable(path, error) from None
