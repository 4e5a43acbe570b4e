"""Find out the layout of a CSV file from its first lines: what separates the fields, and which line is the header."""

from __future__ import annotations

import csv
import re
from collections import Counter

# The number of lines from which the number of fields in a row is found.
LOOKED_AT = 50
# The share of the rows that must have the same number of fields as the header.
_EVEN = 0.8
_SEPARATORS = (";", "\t", "|", ",")
# With fewer columns, a row with a single cell may well be a proper row.
_LEAST_COLUMNS = 3


def guess_separator(text: str, given: str) -> str:
    """Return the separator: the given one if it divides the first lines evenly, or else another one that does.

    Lines above the header are skipped; the separator with which the header comes earliest wins.
    """
    lines = [line for line in text.splitlines()[:LOOKED_AT] if line.strip()]
    if lines and is_separator_line(lines[0]) and len(lines[0].strip()) == len("sep=;"):
        return lines[0].strip()[-1]
    found = {sign: fit for sign in (given, *_SEPARATORS) if (fit := _fit(lines, sign)) is not None}
    # The earliest header wins, then the given separator, then the most fields.
    return min(found, key=lambda sign: (found[sign][0], sign != given, -found[sign][1]), default=given)


def _fit(lines: list[str], separator: str) -> tuple[int, int] | None:
    """Return the place of the header and its number of fields.

    None if the header has only one field, or if most rows have another number.
    """
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
    """Return which row is the header: the first one, unless a title comes before the row of names.

    A title is much narrower than the rows below, or most of its cells are empty.
    """
    if is_separator_line(first[0][0]) and len(first) > 1:
        return 1
    widths = Counter(map(len, first))
    usual = max(widths, key=lambda one: (widths[one], one))
    # Rows that are one field wider than the header just end in a separator.
    is_narrow = len(first[0]) < usual - (len(first[0]) > 1)
    if not is_narrow and (usual < _LEAST_COLUMNS or not _is_mostly_empty(first[0], usual)):
        return 0
    place = next(
        (n for n, row in enumerate(first) if len(row) == usual and not _is_mostly_empty(row, usual)), 0
    )
    return place if (is_narrow and len(first[0]) == 1) or _are_names(first[place]) else 0


def _is_mostly_empty(row: list[str], usual: int) -> bool:
    """Return whether at most half of the cells of a row are filled, if the table has three columns or more."""
    return usual >= _LEAST_COLUMNS and 2 * sum(bool(cell.strip()) for cell in row) <= usual


def is_separator_line(text: str) -> bool:
    """Return whether a line tells a spreadsheet program which separator the file has: `sep=;`."""
    return re.match(r"(?i)sep=.?", text) is not None


def _are_names(row: list[str]) -> bool:
    """Return whether the cells of a row could be names of columns: all different, and no numbers; some may be empty."""
    cells = [text for cell in row if (text := cell.strip())]
    return len(set(cells)) == len(cells) and not any(re.fullmatch(r"[-+]?[\d.,]+", cell) for cell in cells)
