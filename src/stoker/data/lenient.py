"""Read tables leniently, as people write them: numbers with units, forms of dates, missing cells and labels.

`LenientTable` sits between a source and its reader. Columns that Arrow reads by itself pass through unchanged; the
others come as text, and `CellReading` reads their cells. The store keeps the findings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stoker.data.array_types import Array
from stoker.data.arrow_sources import Unfit
from stoker.data.category_columns import TidyCategories, find_usual_words
from stoker.data.cell_dates import has_time
from stoker.data.cell_guesses import ENOUGH, Guess, guess_reading
from stoker.data.cells import BadCellError, CellReading
from stoker.data.columns import GUESS, MOST_CATEGORIES, Column, Restart, Widen
from stoker.data.ingest import TableSource, view
from stoker.data.misfits import KIND_WORDS
from stoker.errors import ArgumentError

# Part of the cache's key: raise the number when the same cells are read differently than before.
LENIENT = "lenient 6"
# How many rows' texts are examined, and how many unreadable cells a report shows.
_SAMPLE_ROWS, _SHOWN = 20_000, 3
# Texts with at least this many words that hardly repeat are free text.
_LEAST_WORDS = 3
_READ_KINDS = ("number", "whole", "truth", "date")


class LenientTable:
    """A source that reads odd cells if it can; all others count as missing.

    Args:
        inner: the source.
        types: the kinds that the caller gave.
        gaps: texts that stand for a missing value.
        label: rows without a value in this column are left out.
    """

    def __init__(
        self,
        inner: TableSource,
        types: dict[str, str] | None = None,
        gaps: tuple[str, ...] = (),
        label: str | None = None,
    ) -> None:
        self.inner, self.name = inner, inner.name
        self._types, self._gaps, self._label = types or {}, gaps, label
        self._how: dict[str, str] = {}
        # By column: the most common way to write each ordinary word.
        self._usual: dict[str, dict[str, str]] = {}
        self._begin()

    def _begin(self) -> None:
        """Forget the findings of an earlier pass."""
        self._bad: Counter[str] = Counter()
        self._filled: Counter[str] = Counter()
        self._shown: dict[str, list[list[Any]]] = {}
        self._tidy = TidyCategories(self._usual, self._label)
        self._rows = self._kept = self._unlabelled = 0

    def fingerprint(self) -> list[Any] | None:
        return self.inner.fingerprint()

    def columns(self) -> list[Column]:
        found = self.inner.columns()
        texts = [
            column.name for column in found if not isinstance(column, Unfit) and self._is_doubtful(column)
        ]
        counts = self._count_texts(texts) if texts else {}
        self._usual = {name: find_usual_words(found) for name, found in counts.items()}
        guesses = {name: self._guess(name, counts[name], False) for name in texts}
        if any(one and one.reading and one.reading.decimal == "," for one in guesses.values()):
            # In a file with decimal commas, 1.234 means 1,234.
            numbers = [
                c.name for c in found if not isinstance(c, Unfit) and c.kind == "number" and not c.blank
            ]
            counts |= self._count_texts(numbers) if numbers else {}
            guesses = {name: self._guess(name, one, True) for name, one in counts.items()}
            texts += numbers
        return [
            self._apply_guess(column, guesses[column.name], counts[column.name])
            if column.name in texts
            else column
            for column in found
        ]

    def _is_doubtful(self, column: Column) -> bool:
        asked = self._types.get(column.name)
        other = asked in _READ_KINDS and asked != column.kind
        return other or column.kind in ("category", "text") or bool(column.doubt)

    def _guess(self, name: str, counts: Counter[str], decimal_comma: bool) -> Guess | None:
        return guess_reading(counts, self._gaps, asked=self._types.get(name), decimal_comma=decimal_comma)

    def _apply_guess(self, column: Column, guess: Guess | None, counts: Counter[str]) -> Column:
        asked = self._types.get(column.name)
        if guess is not None:
            self._how[column.name] = guess.how
        if asked in _READ_KINDS and (guess is None or guess.reading is None):
            first = next(iter(counts), "")
            raise ArgumentError(
                f"types: column {column.name!r} is not {KIND_WORDS[str(asked)]}: it has cells such as {first!r}"
            )
        if guess is None or guess.reading is None:
            # It has too many digits for int64, so most likely it is an id.
            kind = asked or ("category" if column.doubt and column.kind != "text" else column.kind)
            kind = "text" if asked is None and kind == "category" and _is_prose(counts) else kind
            return replace(column.as_kind(kind), asked=asked is not None)
        if column.kind == "number" and guess.reading == CellReading("number") and not column.doubt:
            return column
        return self.read_as(replace(column, asked=asked is not None), guess.reading)

    def read_as(self, column: Column, reading: CellReading) -> Column:
        """Return the column with its cells read this way."""
        kind = "number" if reading.kind == "whole" else reading.kind
        return replace(
            column.as_kind(kind),
            unit=reading.unit,
            reading=json.dumps(replace(reading, kind=kind, gaps=self._gaps).to_json()),
        )

    def _count_texts(self, names: list[str], whole: bool = False) -> dict[str, Counter[str]]:
        """Count the occurrences of each text in these columns, in the first rows or in all."""
        while True:
            counts: dict[str, Counter[str]] = {name: Counter() for name in names}
            try:
                for block in self.inner.blocks([Column(name, "text") for name in names]):
                    some = block if whole else block.slice(0, _SAMPLE_ROWS)
                    for number, name in enumerate(names):
                        counts[name] += _counts(some.column(number))
                    if not whole or max(map(len, counts.values())) > MOST_CATEGORIES:
                        break
            except Restart:
                continue
            return counts

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        self._begin()
        asked = [replace(one, kind="text") if one.reading else one for one in columns]
        try:
            for block in self.inner.blocks(asked):
                values = [
                    self._drop_infinite_numbers(column.name, self._read_column(column, one))
                    for column, one in zip(columns, block.columns, strict=True)
                ]
                self._rows += len(block)
                yield self._drop_unlabelled(columns, values)
        except Widen as wider:
            if wider.column.reading != GUESS:
                raise
            raise Widen(self._guess_again(wider.column)) from None
        self._check(columns)

    def _read_column(self, column: Column, values: pa.Array) -> pa.Array:
        if column.kind == "category" and not column.reading:
            return self._tidy.read(column.name, values)
        return self._read(column, values) if column.reading else values

    def _guess_again(self, column: Column) -> Column:
        """Guess again how to read the column, now from all its cells, because one does not fit the first guess."""
        counts = self._count_texts([column.name], whole=True)[column.name]
        guess = self._guess(column.name, counts, False)
        if guess is None or guess.reading is None:
            self._how[column.name] = guess.how if guess else "a later cell is text"
            return replace(column.as_kind("category"), reading="")
        self._how[column.name] = guess.how
        return self.read_as(column, guess.reading)

    def _read(self, column: Column, values: pa.Array) -> pa.Array:
        """Return the cells of a block. Those that cannot be read become missing, and are counted."""
        reading = CellReading.from_json(json.loads(column.reading))
        encoded = values.cast(pa.string()).dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        if reading.kind == "date" and reading.unit == "D" and any(map(has_time, texts)):
            raise Widen(self.read_as(column, replace(reading, unit="s")))
        found, is_bad = [], np.zeros(len(texts) + 1, bool)
        for number, text in enumerate(texts):
            try:
                found.append(reading.read(text))
            except BadCellError:
                found.append(None)
                is_bad[number] = True
        indices = view(encoded.indices, len(texts))
        self._count(column.name, found, texts, indices, is_bad)
        ready = pa.array([*found, None], pa.int64() if column.kind == "date" else pa.float64())
        taken = ready.take(pa.array(indices))
        if column.kind == "truth":
            return taken.cast(pa.bool_())
        if column.kind == "date":
            return (taken.cast(pa.int32()) if column.unit == "D" else taken).cast(column.arrow)
        return taken

    def _drop_infinite_numbers(self, name: str, values: pa.Array) -> pa.Array:
        """Turn infinite numbers into missing ones, and count them: nothing can be learned from them."""
        if not pa.types.is_floating(values.type):
            return values
        infinite = pc.fill_null(pc.is_inf(values), False)
        if not (count := pc.sum(infinite).as_py()):
            return values
        self._bad[name] += count
        shown = self._shown.setdefault(name, [])
        rows = np.flatnonzero(infinite.to_numpy(zero_copy_only=False))
        for row in rows[: _SHOWN - len(shown)]:
            shown.append([self._rows + int(row) + 1, str(values[int(row)].as_py())])
        return pc.if_else(infinite, pa.scalar(None, values.type), values)

    def _count(self, name: str, found: list[Any], texts: list[str], indices: Array, is_bad: Array) -> None:
        bad = is_bad[indices]
        self._bad[name] += int(bad.sum())
        is_filled = np.array([*(one is not None for one in found), False]) | is_bad
        self._filled[name] += int(is_filled[indices].sum())
        shown = self._shown.setdefault(name, [])
        for row in np.flatnonzero(bad)[: _SHOWN - len(shown)]:
            shown.append([self._rows + int(row) + 1, texts[indices[row]]])

    def _drop_unlabelled(self, columns: list[Column], values: list[pa.Array]) -> pa.RecordBatch:
        """Return the block without the rows that have no label."""
        block = pa.RecordBatch.from_arrays(values, [column.name for column in columns])
        if self._label is not None:
            there = _is_there(block.column(self._label))
            if (count := len(block) - (pc.sum(there).as_py() or 0)) > 0:
                self._unlabelled += count
                block = _decode_categories(block.filter(there), self._label)
        self._kept += len(block)
        return block

    def _check(self, columns: list[Column]) -> None:
        """If too many cells of a column cannot be read, read it as a category after all.

        Raises:
            Widen: a column is to be read as a category.
            ArgumentError: no row has a label.
        """
        if self._unlabelled and not self._kept:
            hint = " (a closing quote is probably missing)" if self._rows == 1 else ""
            raise ArgumentError(
                f"{self.name} has no labels: every cell of column {self._label!r} is empty{hint}"
            )
        for column in columns:
            bad, filled = self._bad[column.name], self._filled[column.name]
            if column.reading and not column.asked and bad > (1 - ENOUGH) * filled:
                row, text = self._shown[column.name][0]
                kind = KIND_WORDS[column.kind]
                self._how[column.name] = (
                    f"{bad:,} of {filled:,} cells are not {kind}, such as {text!r} in row {row:,}"
                )
                raise Widen(replace(column.as_kind("category"), reading=""))

    def found(self) -> dict[str, Any]:
        """Return the findings of the pass as JSON: how columns are read, unreadable cells, rows left out."""
        about: dict[str, Any] = getattr(self.inner, "about_files", dict)()
        return {
            **about,
            "how": self._how,
            "bad": {name: count for name, count in self._bad.items() if count},
            "shown": {name: shown for name, shown in self._shown.items() if shown},
            "unlabelled": self._unlabelled,
            **self._tidy.found(),
        }


def _decode_categories(block: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Return the block with its categories as plain text: their dictionaries would still list dropped rows' values."""
    values = block.column(name)
    if not pa.types.is_dictionary(values.type):
        return block
    place = block.schema.get_field_index(name)
    return block.set_column(place, name, values.cast(values.type.value_type))


def _counts(values: pa.Array) -> Counter[str]:
    counted = values.value_counts()
    texts, counts = counted.field(0).to_pylist(), counted.field(1).to_pylist()
    return Counter({text: count for text, count in zip(texts, counts, strict=True) if text is not None})


def _is_prose(counts: Counter[str]) -> bool:
    """Return whether the texts are sentences rather than names, as they hardly repeat and have several words."""
    total = sum(counts.values())
    if not total or len(counts) <= total / 2:
        return False
    words = sum(len(text.split()) * count for text, count in counts.items())
    return words >= _LEAST_WORDS * total


def _is_there(values: pa.Array) -> pa.Array:
    """Return whether each row has a label; a blank text or NaN does not count as one."""
    if pa.types.is_dictionary(values.type):
        blank = [not text.strip() for text in values.dictionary.to_pylist()]
        if not any(blank):
            return values.is_valid()
        return _is_there(values.cast(values.type.value_type))
    if pa.types.is_string(values.type):
        blanks = pc.is_in(pc.utf8_trim_whitespace(values), value_set=pa.array([""]))
        return pc.and_(values.is_valid(), pc.invert(blanks))
    if pa.types.is_floating(values.type):
        return pc.invert(pc.is_null(values, nan_is_null=True))
    return values.is_valid()
