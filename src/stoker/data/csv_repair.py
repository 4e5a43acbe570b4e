"""Even out the rows of CSV files for Arrow, which only reads rows with as many fields as the header.

Python's reader reads a file with uneven rows first: it fills up short rows with empty cells, leaves out rows that
cannot be right, and counts them (`csv_rows`).
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from stoker.data.csv_rows import CsvRepairs, even_out_rows, is_footer
from stoker.errors import ArgumentError

_CHUNK, _TAIL = 1 << 16, 1 << 12
_CODES = ("utf-8", "cp1252", "latin-1")


class EvenRows(io.RawIOBase):
    """A stream of UTF-8 text with even rows, made from one whose rows may be uneven."""

    def __init__(self, stream: pa.NativeFile, separator: str, repairs: CsvRepairs, name: str) -> None:
        self._stream, self._name = stream, name
        self._rows = even_out_rows(read_rows(stream, separator), repairs)
        self._separator, self._rest = separator, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            buffer = io.StringIO()
            write: Callable[[list[str]], Any] = csv.writer(
                buffer, delimiter=self._separator, lineterminator="\r\n"
            ).writerow
            count = 0
            try:
                for row in itertools.islice(self._rows, 1024):
                    write(row)
                    count += 1
            except csv.Error as error:
                raise ArgumentError(f"{self._name}: {error}") from None
            if not count:
                break
            self._rest += buffer.getvalue().encode()
        size = len(self._rest) if size < 0 else size
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def close(self) -> None:
        self._stream.close()
        super().close()


def read_rows(stream: pa.NativeFile, separator: str) -> Iterator[list[str]]:
    """Yield the rows of a stream of UTF-8, as Python's reader sees them."""
    text = (line if n else line.removeprefix("\ufeff") for n, line in enumerate(_lines(stream)))
    return csv.reader(text, delimiter=separator)


def _lines(stream: pa.NativeFile) -> Iterator[str]:
    """Yield the lines of a stream, with their ends."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest = ""
    while chunk := stream.read(_CHUNK):
        lines = (rest + decoder.decode(chunk)).splitlines(keepends=True)
        lines = _rejoin_lines(lines)
        rest = lines.pop() if lines else ""
        yield from lines
    if rest:
        yield rest


def _rejoin_lines(lines: list[str]) -> list[str]:
    """Rejoin lines that `splitlines` cut at anything but newlines and returns, such as form feeds."""
    found: list[str] = []
    for line in lines:
        if found and not found[-1].endswith(("\n", "\r")):
            found[-1] += line
        else:
            found.append(line)
    return found


def find_ragged(rows: Iterable[list[str]]) -> tuple[int, int, int] | None:
    """Return the first row with more or fewer fields than the header, and both numbers; None if there is none."""
    there = (row for row in rows if row)
    width = len(next(there, []))
    return next(((n, len(row), width) for n, row in enumerate(there, 1) if len(row) != width), None)


def find_encoding(path: Path) -> str:
    """Return a file's encoding: UTF-16 if it begins like that, UTF-8, Windows' or Latin-1; empty if it is not text."""
    with pa.input_stream(str(path)) as stream:
        if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
    return next((code for code in _CODES if _is_text(path, code)), "")


def _is_text(path: Path, code: str) -> bool:
    """Return whether a file can be decoded and has no zero byte."""
    decoder = codecs.getincrementaldecoder(code)()
    with pa.input_stream(str(path)) as stream:
        try:
            while chunk := stream.read(_CHUNK):
                if b"\0" in chunk:
                    return False
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def ends_in_footer(path: Path, separator: str, encoding: str) -> bool:
    """Return whether the last line of a file is a total or a note."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read().decode(encoding if encoding != "utf-16" else "utf-8", "replace")
    # In a spreadsheet's file, empty rows consist of separators.
    lines = [line for line in tail.splitlines() if line.strip(f' \t"{separator}')]
    rows = list(csv.reader(lines[-2:], delimiter=separator))
    return len(rows) == 2 and bool(rows[0]) and is_footer(rows[1], len(rows[0]))
