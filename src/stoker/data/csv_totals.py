"""Recognise the rows of a CSV file that are no data: totals, and the notes below the table.

What a row is shows beside ordinary rows: a `TableShape` says which columns of those are filled, and which hold numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.data.cells import USUAL_GAPS, split_number

_SUBTOTALS = (
    r"sub[- ]?total[ei]?|subtotaal|grand total|zwischensumme|gesamtsumme|endsumme|sous[- ]total|total général"
    r"|totale? generale|suma parcial"
)
_SUMS = rf"{_SUBTOTALS}|totals?|totale|totaal|totalt|insgesamt|gesamt|sum(?:me|ma|a)?|somm[ea]"
_TOTALS = rf"{_SUMS}|average|durchschnitt|mean|median|count"
_TOTAL = re.compile(rf"(?i)\W*({_TOTALS})\W*")
_FOOTER = re.compile(
    rf"(?i)\W*({_TOTALS}|sources?|notes?|generated|exported|created|copyright|end of|report|\(?\d+ rows?)\b.*",
    re.DOTALL,
)
# Inside a table, a word alone or with a number marks a sum; a word that is never a name may have text after it.
_SUM_ALONE = re.compile(rf"(?i)\W*(?:{_SUMS})[\W\d]*")
_SUBTOTAL = re.compile(rf"(?i)\W*(?:{_SUBTOTALS})\b.*", re.DOTALL)
_SUM = re.compile(rf"(?i)\W*(?:{_SUMS})\b.*", re.DOTALL)
# A line that may be a sum, and pieces of which each such line has one, to find out quickly that there is none.
SUM_LINE = re.compile(rf"(?im)^[^\w\r\n]*(?:{_SUMS})\b[^\r\n]*")
SUM_PIECES = (b"tota", b"sum", b"gesamt", b"somm")
# The shares of the ordinary rows that fill a column, and of its cells that are numbers; and of rows that are ordinary.
_FULL, _NUMBERS, _ORDINARY = 0.8, 0.8, 0.9
_LEAST_ROWS, _LEAST_COLUMNS = 5, 3


@dataclass(frozen=True)
class TableShape:
    """What ordinary rows of a table look like.

    Attributes:
        width: the number of columns.
        full: the columns that are filled in most rows.
        numeric: the columns that hold numbers.
        words: by column, the cells of the rows looked at.
        forms: by column, the forms of these cells, as `_form` says; None if hardly two cells are alike.
        is_even: whether enough rows were looked at, and hardly any has a single cell.
    """

    width: int
    full: frozenset[int]
    numeric: frozenset[int]
    words: tuple[frozenset[str], ...]
    forms: tuple[frozenset[str] | None, ...]
    is_even: bool

    @staticmethod
    def of(rows: Sequence[Sequence[str]], width: int) -> TableShape:
        """Find out the shape from the first rows of a table."""
        kept = list(rows)
        while kept and len(_filled(kept[-1])) < 2:
            kept.pop()
        plain = [
            there
            for row in kept
            if len(there := dict(_filled(row[:width]))) > 1 and (len(there) == width or not _is_sum(there))
        ]
        full, numeric, words, forms = set(), set(), [], []
        for place in range(width):
            cells = [cell for row in plain if (cell := row.get(place))]
            if cells and len(cells) >= _FULL * len(plain):
                full.add(place)
            if cells and sum(split_number(cell) is not None for cell in cells) >= _NUMBERS * len(cells):
                numeric.add(place)
            words.append(frozenset(cells))
            found = frozenset(map(_form, cells))
            forms.append(found if 2 * len(found) <= max(len(cells), 2) else None)
        sums = sum(_is_sum(dict(_filled(row))) for row in kept)
        even = len(plain) >= max(_LEAST_ROWS, _ORDINARY * (len(kept) - sums))
        return TableShape(width, frozenset(full), frozenset(numeric), tuple(words), tuple(forms), even)

    def is_total(self, row: Sequence[str]) -> bool:
        """Return whether a row is clearly a total, wherever it stands: a known word, numbers, and no other text.

        Columns that ordinarily hold text must be empty, or the word must stand among numbers. So a row of the shop
        "Total" is none.
        """
        cells = _filled(row[: self.width])
        if len(cells) < 2 or not _SUM.fullmatch(cells[0][1]) or not self.is_even:
            return False
        place, word = cells[0]
        if any(one not in self.numeric or split_number(cell) is None for one, cell in cells[1:]):
            return False
        if place in self.numeric:
            return True
        emptied = 0 if word in self.words[place] else len(self.full - self.numeric - {place})
        if _SUM_ALONE.fullmatch(word):
            return emptied > 0
        return emptied > (0 if _SUBTOTAL.fullmatch(word) else 1)

    def is_note(self, row: Sequence[str]) -> bool:
        """Return whether a row at the end is a note: one cell, unlike those of its column, in a table of full rows."""
        cells = _filled(row[: self.width])
        if len(cells) != 1 or len(self.full) < _LEAST_COLUMNS or not self.is_even:
            return False
        place, cell = cells[0]
        if place in self.numeric:
            return split_number(cell) is None
        forms = self.forms[place]
        return forms is not None and _form(cell) not in forms


def is_footer(row: Sequence[str], width: int) -> bool:
    """Return whether a row at the end of a file begins with a word for totals or notes, and is not full."""
    there = [text for cell in row if (text := cell.strip())]
    if not there:
        return False
    few = 2 * len(there) <= max(2, width) and _FOOTER.fullmatch(there[0]) is not None
    return few or (len(there) < width and _TOTAL.fullmatch(there[0]) is not None)


def _is_sum(cells: dict[int, str]) -> bool:
    return bool(cells) and _SUM.fullmatch(next(iter(cells.values()))) is not None


def _filled(row: Sequence[str]) -> list[tuple[int, str]]:
    return [
        (place, text) for place, cell in enumerate(row) if (text := cell.strip()).lower() not in USUAL_GAPS
    ]


def _form(cell: str) -> str:
    """Return a cell with one letter for each word and one digit for each number: "A17" and "B4" look alike."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", cell))
