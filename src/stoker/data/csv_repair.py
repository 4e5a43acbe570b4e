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

from stoker.data.csv_layout import LOOKED_AT, find_header
from stoker.data.csv_rows import CsvRepairs, even_out_rows, find_footers
from stoker.data.csv_totals import SUM_LINE, SUM_PIECES, TableShape
from stoker.data.paths import PACKED
from stoker.errors import ArgumentError

_CHUNK, _SCANNED, _TAIL = 1 << 16, 1 << 20, 1 << 12
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


def find_totals(stream: pa.NativeFile, separator: str, end: bytes | None = None) -> bool:
    """Return whether a table has totals among its rows, or totals or notes at its end.

    Args:
        stream: the table in UTF-8.
        separator: the separator of its fields.
        end: the last bytes of the file; without them, the stream is read to its end.
    """
    chunk = stream.read(_SCANNED)
    first = _parse(chunk, separator)[:LOOKED_AT]
    if not first:
        return False
    above = find_header(first)
    shape = TableShape.of(first[above + 1 :], len(first[above]))
    rest = b""
    while chunk:
        text = rest + chunk
        last, cut = text[-_TAIL:], max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if _has_total(text[:cut], separator, shape):
            return True
        rest, chunk = text[cut:], stream.read(_SCANNED) if end is None else b""
    if end is None and _has_total(rest, separator, shape):
        return True
    # The first line may have been cut.
    rows = _parse(last if end is None else end, separator)[1:]
    return find_footers([(row, None) for row in rows], shape) < len(rows)


def read_end(path: Path, encoding: str) -> bytes:
    """Return the last bytes of a file in UTF-8; none if that takes reading all of it."""
    if encoding == "utf-16" or path.name.lower().endswith(PACKED):
        return b""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _TAIL))
        return file.read().decode(encoding, "replace").encode()


def _has_total(text: bytes, separator: str, shape: TableShape) -> bool:
    lower = text.lower()
    if not any(piece in lower for piece in SUM_PIECES):
        return False
    lines = (found[0] for found in SUM_LINE.finditer(text.decode("utf-8", "replace")))
    return any(shape.is_total(row) for row in csv.reader(lines, delimiter=separator))


def _parse(text: bytes, separator: str) -> list[list[str]]:
    lines = text.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    # In a spreadsheet's file, empty rows consist of separators.
    return list(csv.reader((line for line in lines if line.strip(f' \t"{separator}')), delimiter=separator))
