"""CSV files with uneven rows, made even: ragged rows, lines above the header, totals at the end, headers repeated.

Arrow reads only rows with as many fields as the header. Where a file has others, Python's reader goes through it first:
short rows are filled up with empty cells, and rows that cannot be right are left out and counted.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from stoker.errors import ArgumentError
from stoker.units import quantity

# Rows that show how many fields a row has, rows at the end that may be totals, and rows that a report shows.
LOOKED_AT, _LAST, _SHOWN = 50, 5, 3
_CHUNK, _TAIL = 1 << 16, 1 << 12
_FOOTER = re.compile(
    r"(?i)\W*((grand |sub)?totals?|sum(me)?|gesamt|average|mean|median|count|sources?|notes?|generated|exported|"
    r"created|copyright|end of|report|\(?\d+ rows?)\b.*",
    re.DOTALL,
)
# Begins the names of columns that are not read.
HIDDEN = "\x1f"
_CODES = ("utf-8", "cp1252", "latin-1")


@dataclass
class CsvRepairs:
    """What was done to the rows of a file.

    Attributes:
        left_out: rows left out, and why, with their count.
        shown: the first few of them: the row, and the reason.
        filled: how many short rows were filled up.
        above: lines above the header.
        renamed: columns that share their name with a later one.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    shown: list[tuple[int, str]] = field(default_factory=list)
    filled: int = 0
    above: int = 0
    renamed: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The same in words, a line each."""
        found = [f"{quantity(count, 'row')} left out: {why}" for why, count in self.left_out.items()]
        if found:
            found[0] += f" (row {', '.join(f'{row:,}' for row, _ in self.shown)})"
        if self.filled:
            found.append(
                f"{quantity(self.filled, 'row')} had fewer fields than the header: the others are missing"
            )
        if self.above:
            found.append(f"{quantity(self.above, 'line')} above the header left out")
        if self.renamed:
            found.append(f"several columns are called {self.renamed[0]!r}: only the last one is read")
        return found


def even_out_rows(rows: Iterable[list[str]], repairs: CsvRepairs) -> Iterator[list[str]]:
    """The header, then every row with as many fields as it has."""
    waiting = iter(rows)
    first = [row for row in itertools.islice(waiting, LOOKED_AT) if row]
    above = find_header(first)
    repairs.above = above
    header = first[above]
    width = len(header)
    yield _different_names(header, repairs)
    plain = [cell.strip() for cell in header]
    last: list[tuple[int, list[str]]] = []
    rest = itertools.chain(first[above + 1 :], (row for row in waiting if row))
    for number, row in enumerate(rest, 1):
        why = _fault(row, width, plain)
        if why is not None:
            repairs.left_out[why] += 1
            if len(repairs.shown) < _SHOWN:
                repairs.shown.append((number, why))
            continue
        last.append((number, row))
        if len(last) > _LAST:
            yield _fill(last.pop(0)[1], width, repairs)
    end = len(last)
    while end and is_footer(last[end - 1][1], width):
        end -= 1
        repairs.left_out["a total or a note at the end"] += 1
        repairs.shown = repairs.shown[: _SHOWN - 1] + [(last[end][0], "")]
    for _, row in last[:end]:
        yield _fill(row, width, repairs)


def find_header(first: list[list[str]]) -> int:
    """Which row is the header: the first one, unless it is much narrower than the others and one of them has names."""
    if is_separator_line(first[0][0]) and len(first) > 1:
        return 1
    widths = Counter(map(len, first))
    usual = max(widths, key=lambda one: (widths[one], one))
    # Rows that are one field wider than the header end in a separator.
    if len(first[0]) >= usual - (len(first[0]) > 1):
        return 0
    place = next(number for number, row in enumerate(first) if len(row) == usual)
    return place if len(first[0]) == 1 or _are_names(first[place]) else 0


def is_separator_line(text: str) -> bool:
    """Whether a line tells a spreadsheet program how the fields are separated: `sep=;`."""
    return re.match(r"(?i)sep=.?", text) is not None


def _are_names(row: list[str]) -> bool:
    """Whether the cells of a row could be names of columns: different, and no numbers."""
    cells = [cell.strip() for cell in row]
    return len(set(cells)) == len(cells) and not any(re.fullmatch(r"[-+]?[\d.,]*", cell) for cell in cells)


def _different_names(header: list[str], repairs: CsvRepairs) -> list[str]:
    """The names of the columns; of several with the same name, the last one keeps it, as in `csv.DictReader`."""
    found = list(header)
    for number, name in enumerate(header):
        if name in header[number + 1 :]:
            found[number] = make_hidden_name(name, number)
            repairs.renamed.append(name)
    return found


def make_hidden_name(name: str, number: int) -> str:
    """The name of a column that is not read, because a later one is called the same."""
    return f"{HIDDEN}{name} {number + 1}"


def _fault(row: list[str], width: int, header: list[str]) -> str | None:
    """Why a row is left out; None if it is not."""
    if len(row) > width and any(cell.strip() for cell in row[width:]):
        return f"more fields than the {width} of the header"
    if len(row) == 1 and width > 2:
        return "a single field"
    if [cell.strip() for cell in row[:width]] == header:
        return "the header again"
    return None


def is_footer(row: list[str], width: int) -> bool:
    """Whether a row at the end of a file is a total or a note."""
    there = [cell.strip() for cell in row if cell.strip()]
    return bool(there) and 2 * len(there) <= max(2, width) and _FOOTER.fullmatch(there[0]) is not None


def _fill(row: list[str], width: int, repairs: CsvRepairs) -> list[str]:
    if len(row) < width:
        repairs.filled += 1
        return row + [""] * (width - len(row))
    return row[:width]


class EvenRows(io.RawIOBase):
    """A stream of UTF-8 text whose rows are even, made from one whose rows may not be."""

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
    """The rows of a stream of UTF-8, as Python's reader sees them."""
    text = (line if n else line.removeprefix("\ufeff") for n, line in enumerate(_lines(stream)))
    return csv.reader(text, delimiter=separator)


def _lines(stream: pa.NativeFile) -> Iterator[str]:
    """The lines of a stream, with their ends."""
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
    """Join what `splitlines` cut at anything but newlines and returns, such as form feeds."""
    found: list[str] = []
    for line in lines:
        if found and not found[-1].endswith(("\n", "\r")):
            found[-1] += line
        else:
            found.append(line)
    return found


def find_ragged(rows: Iterable[list[str]]) -> tuple[int, int, int] | None:
    """The first row that has more or fewer fields than the header, with both numbers; None if there is none."""
    there = (row for row in rows if row)
    width = len(next(there, []))
    return next(((n, len(row), width) for n, row in enumerate(there, 1) if len(row) != width), None)


def find_encoding(path: Path) -> str:
    """The encoding of a file that is not UTF-8: UTF-16 if it begins like that, Windows' or Latin-1; empty if none."""
    with pa.input_stream(str(path)) as stream:
        start = stream.read(2)
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        decoders = {code: codecs.getincrementaldecoder(code)() for code in _CODES}
        chunk = start
        while chunk:
            if b"\0" in chunk:
                return ""
            for code, decoder in list(decoders.items()):
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    del decoders[code]
            chunk = stream.read(_CHUNK)
    return next(iter(decoders))


def ends_in_footer(path: Path, separator: str, encoding: str) -> bool:
    """Whether the last line of a file is a total or a note."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read().decode(encoding if encoding != "utf-16" else "utf-8", "replace")
    lines = [line for line in tail.splitlines() if line.strip()]
    rows = list(csv.reader(lines[-2:], delimiter=separator))
    return len(rows) == 2 and bool(rows[0]) and is_footer(rows[1], len(rows[0]))


def guess_separator(text: str, given: str) -> str:
    """The separator: the given one if it divides the first lines evenly, or else another that does."""
    lines = [line for line in text.splitlines()[:LOOKED_AT] if line.strip()]
    if lines and is_separator_line(lines[0]) and len(lines[0].strip()) == len("sep=;"):
        return lines[0].strip()[-1]
    if _count_fields(lines, given):
        return given
    others = [sign for sign in (";", "\t", "|", ",") if sign != given]
    return (
        max(others, key=lambda sign: _count_fields(lines, sign), default=given)
        if lines and any(_count_fields(lines, sign) for sign in others)
        else given
    )


def _count_fields(lines: list[str], separator: str) -> int:
    """How many fields the header and most of the lines have; 0 if they differ or have one."""
    widths = Counter(len(row) for row in csv.reader(lines, delimiter=separator))
    first = len(next(csv.reader(lines[:1], delimiter=separator), []))
    return first if first > 1 and widths[first] >= 0.8 * sum(widths.values()) else 0
