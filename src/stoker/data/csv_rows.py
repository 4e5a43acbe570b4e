"""Decide which rows of a CSV file count: lines above the header, uneven rows, repeated headers, totals.

Training, prediction and the server judge rows by these rules, so that all read a file in the same way.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from stoker.data.csv_layout import LOOKED_AT, find_header
from stoker.data.csv_totals import TableShape, is_footer
from stoker.units import quantity

# How many rows at the end may be totals, and how many rows a report shows.
_LAST, _SHOWN = 20, 3
FOOTER, EMPTY = "a total or a note at the end", "empty, at the end"
TOTAL = "a total among the rows"
AT_END = (FOOTER, EMPTY)
# The prefix of the names of columns that are not read.
HIDDEN = "\x1f"
# The cells of a row, as many as the header has, and why the row is left out; None if it is not.
JudgedRow: TypeAlias = tuple[list[str], str | None]


@dataclass
class CsvRepairs:
    """The repairs made to the rows of a file.

    Attributes:
        left_out: the reasons why rows were left out, with the number of rows.
        shown: the first few rows for each reason, with the reason.
        filled: how many short rows were filled up.
        above: lines above the header.
        renamed: columns that share their name with a later one.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    shown: list[tuple[int, str]] = field(default_factory=list)
    filled: int = 0
    above: int = 0
    renamed: list[str] = field(default_factory=list)

    def lines(self, fate: str = "left out") -> list[str]:
        """Return the repairs in words, one per line; `fate` is what became of rows that do not count."""
        found = []
        for why, count in self.left_out.items():
            shown = [f"{row:,}" for row, of in self.shown if of == why]
            rows = f"row{'s' * (len(shown) > 1)} {', '.join(shown)}"
            found.append(f"{quantity(count, 'row')} {fate}: {why} ({rows})")
        if self.filled:
            found.append(
                f"{quantity(self.filled, 'row')} had fewer fields than the header: the rest count as missing"
            )
        if self.above:
            found.append(f"{quantity(self.above, 'line')} above the header left out")
        if self.renamed:
            found.append(f"several columns are called {self.renamed[0]!r}: only the last one is read")
        return found


def even_out_rows(rows: Iterable[list[str]], repairs: CsvRepairs) -> Iterator[list[str]]:
    """Yield the header, then every row that counts, with as many fields as the header."""
    return (cells for cells, why in judge_rows(rows, repairs) if why is None)


def judge_rows(rows: Iterable[list[str]], repairs: CsvRepairs) -> Iterator[JudgedRow]:
    """Yield the header, then every row below it in the order of the file. Empty lines are skipped.

    Args:
        rows: all rows of the file, as Python's reader gives them.
        repairs: filled in while the rows are read.
    """
    waiting = iter(rows)
    first = [row for row in itertools.islice(waiting, LOOKED_AT) if row]
    if not first:
        return
    above = find_header(first)
    repairs.above = above
    header = first[above]
    width = len(header)
    yield _different_names(header, repairs), None
    plain = [cell.strip() for cell in header]
    shape = TableShape.of(first[above + 1 :], width)
    # The last rows wait until it is known whether they are totals.
    last: list[tuple[int, list[str], str | None]] = []
    rest = itertools.chain(first[above + 1 :], (row for row in waiting if row))
    for number, row in enumerate(rest, 1):
        last.append((number, row, _fault(row, plain, shape)))
        if len(last) > _LAST:
            yield _judge(*last.pop(0), width, repairs)
    end = find_footers([(row, why) for _, row, why in last], shape)
    for place, (number, row, why) in enumerate(last):
        if place >= end and why in (None, TOTAL):
            why = FOOTER if _is_filled(row) else EMPTY
        yield _judge(number, row, why, width, repairs)


def fill_rows(rows: Iterable[list[str]]) -> Iterator[JudgedRow]:
    """Yield rows of texts. They are not judged, as any text may be a row; cells beyond the header are cut off."""
    there = (row for row in rows if row)
    header = next(there, [])
    width = len(header)
    if header:
        yield header, None
    yield from ((row[:width] + [""] * (width - len(row)), None) for row in there)


def find_footers(last: list[JudgedRow], shape: TableShape) -> int:
    """Return where the totals, notes and empty rows at the end begin."""
    end = len(last)
    for place in range(len(last) - 1, -1, -1):
        row, why = last[place]
        if is_footer(row, shape.width) or shape.is_note(row) or not _is_filled(row):
            end = place
        elif why is None:
            break
    return end


def _is_filled(row: list[str]) -> bool:
    return any(cell.strip() for cell in row)


def _judge(number: int, row: list[str], why: str | None, width: int, repairs: CsvRepairs) -> JudgedRow:
    if why is not None:
        repairs.left_out[why] += 1
        if repairs.left_out[why] <= _SHOWN:
            repairs.shown.append((number, why))
    elif len(row) < width:
        repairs.filled += 1
    return row[:width] + [""] * (width - len(row)), why


def _different_names(header: list[str], repairs: CsvRepairs) -> list[str]:
    """Return the names of the columns. Of several with the same name, the last one keeps it, as in `csv.DictReader`."""
    found = list(header)
    for number, name in enumerate(header):
        if name in header[number + 1 :]:
            found[number] = make_hidden_name(name, number)
            repairs.renamed.append(name)
    return found


def make_hidden_name(name: str, number: int) -> str:
    """Make the name of a column that is not read because a later one has the same name."""
    return f"{HIDDEN}{name} {number + 1}"


def _fault(row: list[str], header: list[str], shape: TableShape) -> str | None:
    """Return why a row is left out; None if it is not."""
    width = len(header)
    if len(row) > width and any(cell.strip() for cell in row[width:]):
        return f"more fields than the {width} of the header"
    if len(row) == 1 and width > 2:
        return "a single field"
    if [cell.strip() for cell in row[:width]] == header:
        return "the header again"
    return TOTAL if shape.is_total(row) else None
