"""Text among the numbers of a CSV column, such as `?` or `n.a.`: where it is, how much there is, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from stoker.errors import ArgumentError
from stoker.units import quantity

_NUMBER = r"^\s*[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|(?i:inf|infinity))\s*$"
# The texts that count as a missing number.
_ABSENT = r"^((?i:#?n/?a|[-+]?nan|null)|None|<NA>)?$"
# A share of a column's values below this counts as a slip.
_FEW = 0.1
# The number of different texts that a message names.
_NAMED = 3


@dataclass(frozen=True)
class OddCells:
    """The cells of a column that are not numbers.

    Attributes:
        row: the row of the first one, counted from 1.
        value: the first one.
        count: how many there are.
        rows: how many rows were checked.
        filled: how many cells are not empty, these included.
        texts: the first few different ones.
    """

    row: int
    value: str
    count: int
    rows: int
    filled: int
    texts: tuple[str, ...]

    @property
    def are_few(self) -> bool:
        """Return whether the cells are a slip rather than a category."""
        return self.count <= _FEW * self.filled

    @property
    def look_like_gaps(self) -> bool:
        """Return whether the column is mostly numbers, with a few texts that repeat."""
        return len(self.texts) <= _NAMED and 2 * self.count <= self.filled

    def refusal(self, where: str, column: str, kind: str, whole_file: bool = True) -> str:
        """Return the line that refuses the cells.

        Args:
            where: the file.
            column: the name of the column.
            kind: what the other cells are, such as "a number".
            whole_file: whether the whole file was checked, not only its beginning.
        """
        them = "it" if self.count == 1 else "them"
        return (
            f"{where}, row {self.row:,}: {self.value!r} in column {column} is not {kind}, as most of its values "
            f"are ({quantity(self.count, 'such cell')}{self._describe_extent(whole_file)}): take {them} as missing "
            f"with missing={self._spelling}, correct {them}, or read the column with types={{{column!r}: 'category'}}"
        )

    def note(self, where: str, column: str, whole_file: bool) -> str:
        """Return the line that says why the column is read as a category: because of these cells."""
        return (
            f"{where}: column {column} is read as a category, not as numbers: {quantity(self.count, 'cell')}"
            f"{self._describe_extent(whole_file)} are not numbers, the first is {self.value!r} in row {self.row:,}; "
            f"take them as missing with missing={self._spelling}, or, if it is a category, read it with "
            f"types={{{column!r}: 'category'}}"
        )

    def _describe_extent(self, whole_file: bool) -> str:
        return "" if whole_file else f" in the first {self.rows:,} rows"

    @property
    def _spelling(self) -> str:
        """The value of `missing=` that names the first few."""
        return repr(self.texts[0]) if len(self.texts) == 1 else repr(list(self.texts[:_NAMED]))


def find_odd_cells(blocks: Iterable[pa.Array]) -> OddCells | None:
    """Return the cells of a text column, given block by block, that are not numbers; None if there are none."""
    rows = count = filled = 0
    first: tuple[int, str] | None = None
    texts: dict[str, None] = {}
    for block in blocks:
        there = pc.invert(pc.match_substring_regex(block, _ABSENT))
        odd = pc.and_(there, pc.invert(pc.match_substring_regex(block, _NUMBER)))
        filled += pc.sum(there).as_py() or 0
        if some := pc.sum(odd).as_py():
            if first is None:
                # `pc.index` would import pandas.
                index = pc.indices_nonzero(odd)[0].as_py()
                first = rows + index + 1, block[index].as_py()
            count += some
            if len(texts) <= _NAMED:
                texts |= dict.fromkeys(block.filter(odd).unique().slice(0, _NAMED + 1).to_pylist())
        rows += len(block)
    return None if first is None else OddCells(*first, count, rows, filled, tuple(texts)[: _NAMED + 1])


def check_missing(missing: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the texts that stand for missing values as a tuple.

    Raises:
        ArgumentError: they are not texts.
    """
    given = (missing,) if isinstance(missing, str) else missing or ()
    texts = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(text, str) for text in texts):
        raise ArgumentError(
            f"missing={missing!r} must be a string that stands for a missing value, such as '?', or a list of them"
        )
    return texts


def replace_missing(values: pa.Array, missing: tuple[str, ...]) -> pa.Array:
    """Return the values of a column, with null in place of the texts that stand for missing values."""
    if not missing:
        return values
    if pa.types.is_dictionary(values.type):
        words = values.dictionary
        if replace_missing(words, missing).null_count == words.null_count:
            return values
        return replace_missing(values.cast(values.type.value_type), missing).dictionary_encode()
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    gone = pc.is_in(values, value_set=pa.array(missing, values.type))
    return pc.if_else(gone, pa.scalar(None, values.type), values)
