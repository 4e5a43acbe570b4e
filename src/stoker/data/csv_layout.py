"""How a CSV file is laid out, from its first lines: what separates the fields, and which line is the header."""

from __future__ import annotations

import csv
import re
from collections import Counter

# Lines that show how many fields a row has.
LOOKED_AT = 50
# The share of the rows that must have as many fields as the header.
_EVEN = 0.8
_SEPARATORS = (";", "\t", "|", ",")
# With fewer columns, a row with one cell may well be a row.
_LEAST_COLUMNS = 3


def guess_separator(text: str, given: str) -> str:
    """The separator: the given one if it divides the first lines evenly, or else another that does.

    Lines above the header are passed over; the separator that finds the header earliest counts.
    """
    lines = [line for line in text.splitlines()[:LOOKED_AT] if line.strip()]
    if lines and is_separator_line(lines[0]) and len(lines[0].strip()) == len("sep=;"):
        return lines[0].strip()[-1]
    found = {sign: fit for sign in (given, *_SEPARATORS) if (fit := _fit(lines, sign)) is not None}
    # The earliest header, then the given one, then the most fields.
    return min(found, key=lambda sign: (found[sign][0], sign != given, -found[sign][1]), default=given)


def _fit(lines: list[str], separator: str) -> tuple[int, int] | None:
    """The place of the header and its fields; None if most of the rows have another number of them, or one."""
    rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    if not rows:
        return None
    above = find_header(rows)
    width = len(rows[above])
    even = sum(len(row) == width for row in rows[above:])
    if width < 2 or even < _EVEN * len(rows[above:]) or (above and not _are_names(rows[above])):
        return None
    return above, width


def find_header(first: list[list[str]]) -> int:
    """Which row is the header: the first one, unless a title stands above the row of names.

    A title is much narrower than the rows below, or most of its cells are empty.
    """
    if is_separator_line(first[0][0]) and len(first) > 1:
        return 1
    widths = Counter(map(len, first))
    usual = max(widths, key=lambda one: (widths[one], one))
    # Rows that are one field wider than the header end in a separator.
    is_narrow = len(first[0]) < usual - (len(first[0]) > 1)
    if not is_narrow and (usual < _LEAST_COLUMNS or not _is_mostly_empty(first[0], usual)):
        return 0
    place = next(
        (n for n, row in enumerate(first) if len(row) == usual and not _is_mostly_empty(row, usual)), 0
    )
    return place if (is_narrow and len(first[0]) == 1) or _are_names(first[place]) else 0


def _is_mostly_empty(row: list[str], usual: int) -> bool:
    """Whether at most half of the cells of a row, one of three or more, are filled."""
    return usual >= _LEAST_COLUMNS and 2 * sum(bool(cell.strip()) for cell in row) <= usual


def is_separator_line(text: str) -> bool:
    """Whether a line tells a spreadsheet program how the fields are separated: `sep=;`."""
    return re.match(r"(?i)sep=.?", text) is not None


def _are_names(row: list[str]) -> bool:
    """Whether the cells of a row could be names of columns: different, and no numbers."""
    cells = [cell.strip() for cell in row]
    return len(set(cells)) == len(cells) and not any(re.fullmatch(r"[-+]?[\d.,]*", cell) for cell in cells)
