"""Rows of a table as they appear in its file: texts for numbers and dates, missing keys, columns that are not inputs.

A field that has a `reading` is a column of a table. Its cells are read as they were for training.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized

import numpy as np

from stoker.data.cells import BadCellError, CellReading
from stoker.errors import ArgumentError, find_nearest
from stoker.logs import LOGGER
from stoker.serve.signature import UNITS, Array, Field

# How alike two names must be for one to count as a misspelling of the other.
_ALIKE = 0.8
# Names shorter than this are only one letter away from too many others.
_LEAST_LETTERS = 3
# How German and Scandinavian letters are spelled on keyboards without them; what NFKD does not take apart.
_SPELLED_OUT = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "œ": "oe", "ł": "l"}
)
_WITHOUT_STROKES = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "ł": "l"})
_MISSING_TYPES = ("NAType", "NaTType")
# Columns whose unreadable cells have been logged.
_warned: set[str] = set()


class RowError(ArgumentError):
    """Rows that do not fit the signature."""


def is_table(fields: Sequence[Field]) -> bool:
    """Return whether the inputs are columns of a table whose cells the bundle can read."""
    return any(field.reading is not None for field in fields)


def match_names(fields: Sequence[Field], names: Iterable[Hashable], what: str) -> dict[str, Hashable]:
    """Return the key of each input that a row has. Keys may differ in spaces and case; other columns are left out.

    Raises:
        RowError: a key looks like the misspelled name of an input that is missing, or no key is an input.
    """
    keys = list(names)
    found: dict[str, Hashable] = {field.name: field.name for field in fields if field.name in keys}
    lost = {_plain_name(field.name): field.name for field in fields if field.name not in found}
    others = [key for key in keys if key not in found]
    for key in others if lost else ():
        if (name := lost.pop(_plain_name(key), None)) is not None:
            found[name] = key
    unknown = [str(key) for key in others if key not in found.values()] if lost else []
    near = [(key, name) for key in unknown if (name := _find_resembling(key, lost.values())) is not None]
    if near:
        listed = ", ".join(f"{key!r} (did you mean {name!r}?)" for key, name in near)
        inputs = "input" if len(near) == 1 else "inputs"
        raise RowError(f'{what}: unknown {inputs} {listed}; for a missing value, send "{near[0][1]}": null')
    if not found:
        raise RowError(f"{what} has none of the columns {', '.join(field.name for field in fields)}")
    return found


def _find_resembling(key: str, names: Iterable[str]) -> str | None:
    """Return the name that the key probably means; None if it resembles none."""
    found = [name for name in names if any(map(_resemble, _spellings(key), _spellings(name)))]
    return find_nearest(key, found, 0.0) if found else None


def _resemble(one: str, other: str) -> bool:
    """Return whether two names are alike: the same letters, one slip in typing, or mostly the same."""
    if one == other:
        return True
    if min(len(one), len(other)) < _LEAST_LETTERS:
        return False
    return _is_one_slip(one, other) or find_nearest(one, [other], _ALIKE) is not None


def _is_one_slip(one: str, other: str) -> bool:
    """Return whether one letter was added, left out or replaced, or two neighbours were swapped."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next((n for n, letter in enumerate(short) if letter != long[n]), len(short))
    if len(long) > len(short):
        return short[start:] == long[start + 1 :]
    swapped = long[start + 1 : start + 2] + long[start : start + 1] + long[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or short[start:] == swapped


def _spellings(name: Hashable) -> tuple[str, str]:
    """Return a name without what people vary: case, spaces, hyphens, and letters that not every keyboard has.

    `Fläche (m²)` is `flaechem2` with its letters spelled out, and `flachem2` without their accents.
    """
    plain = unicodedata.normalize("NFC", str(name).casefold())
    return _letters(plain.translate(_SPELLED_OUT)), _letters(plain.translate(_WITHOUT_STROKES))


def _letters(name: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", name) if letter.isalnum())


def describe_absent(fields: Sequence[Field], names: Iterable[Hashable], what: str) -> str | None:
    """Say what the model uses in place of the inputs that a file lacks; None if the file has them all.

    Raises:
        RowError: the file has none of them, or one looks misspelled.
    """
    found = match_names(fields, names, what)
    absent = [field for field in fields if field.name not in found]
    if not absent:
        return None
    used = ", ".join(f"{field.name!r} ({_describe_gap(field)})" for field in absent)
    return f"{what} has no column {used}"


def _describe_gap(field: Field) -> str:
    """Say what a missing cell becomes."""
    if field.reading is not None and field.reading.fill is not None:
        return f"{_gap(field, field.reading, None):.6g} is used, the mean in training"
    if field.kind == "category":
        return "an unknown category is used"
    return "an empty string is used" if field.dtype == "string" else "it is taken as missing"


def _plain_name(name: Hashable) -> str:
    return unicodedata.normalize("NFC", str(name).strip("\ufeff \t")).casefold()


def columns_of_rows(fields: Sequence[Field], rows: Sequence[Mapping[Hashable, object]]) -> list[object]:
    """Return the cells of each input, from rows that may lack some; None stands for a missing cell."""
    matched: dict[frozenset[Hashable], dict[str, Hashable]] = {}
    columns: list[list[object]] = [[] for _ in fields]
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise RowError(f"row {number + 1} must be a dict like the first, got {type(row).__name__}")
        keys = frozenset(row)
        if keys not in matched:
            matched[keys] = match_names(fields, row, f"row {number + 1}")
        names = matched[keys]
        for field, column in zip(fields, columns, strict=True):
            key = names.get(field.name)
            column.append(None if key is None else row[key])
    return list(columns)


def columns_of_dict(fields: Sequence[Field], given: Mapping[Hashable, object]) -> list[object]:
    """Return the column of each input, from a row or from columns; a missing one gets as many cells as the others."""
    names = match_names(fields, given, "the row")
    columns = {name: given[key] for name, key in names.items()}
    return _with_gaps(fields, columns)


def _with_gaps(fields: Sequence[Field], columns: Mapping[str, object]) -> list[object]:
    first = next(iter(columns.values()))
    # A text is one cell.
    gap = [None] * len(first) if isinstance(first, Sized) and not isinstance(first, str | bytes) else None
    return [columns.get(field.name, gap) for field in fields]


def columns_of_frame(
    fields: Sequence[Field], names: Sequence[str], columns: Mapping[str, object]
) -> list[object]:
    """Return the column of each input of a frame; `columns` gives the values of a name."""
    matched = match_names(fields, names, "the frame")
    return _with_gaps(fields, {name: columns[str(key)] for name, key in matched.items()})


def read_cells(field: Field, array: Array) -> Array:
    """Return the values of a column, with texts read and missing cells filled as in training.

    Raises:
        RowError: a text cannot be read.
    """
    reading = field.reading
    if reading is None:
        return array
    if field.dtype == "string":
        return _read_words(reading, array)
    if array.dtype.kind == "f":
        return _fill(field, reading, array)
    if array.dtype.kind not in "OUSM":
        return array
    unit = UNITS.get(field.unit, field.unit)
    # The same text often recurs in the rows of a file.
    known: dict[str, float | int] = {}
    flat: list[float | int] = []
    for one in array.ravel():
        value = known.get(one) if type(one) is str else None
        if value is None:
            value = _read(field, reading, one, unit)
            if type(one) is str:
                known[one] = value
        flat.append(value)
    if all(type(one) is int for one in flat):
        try:
            return np.array(flat, np.int64).reshape(array.shape)
        except OverflowError:
            raise misfit(field, max(flat, key=abs)) from None
    return np.array(flat, np.float64).reshape(array.shape)


def _read_words(reading: CellReading, array: Array) -> Array:
    """Return the words of a category, or texts, with None in place of those that stand for a missing value."""
    if not (reading.gaps or reading.trimmed) or array.dtype.kind not in "OUS":
        return array
    known: dict[object, object] = {}
    for one in {one for one in array.ravel() if isinstance(one, str | bytes)}:
        text = one.decode("utf-8", "surrogateescape") if isinstance(one, bytes) else one
        known[one] = None if text in reading.gaps else reading.read_word(text)
        if isinstance(one, bytes) and known[one] == text:
            known[one] = one
    found = np.empty(array.size, object)
    found[:] = [known[one] if isinstance(one, str | bytes) else one for one in array.ravel()]
    return found.reshape(array.shape)


def _fill(field: Field, reading: CellReading, array: Array) -> Array:
    gaps = np.isnan(array)
    return np.where(gaps, _gap(field, reading, np.nan), array) if gaps.any() else array


def _read(field: Field, reading: CellReading, cell: object, unit: str) -> float | int:
    """Read one cell as a number."""
    if cell is None or type(cell).__name__ in _MISSING_TYPES or cell != cell:
        return _gap(field, reading, cell)
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str):
        try:
            value = reading.read(cell)
        except BadCellError:
            if not reading.tolerant:
                raise misfit(field, cell) from None
            _warn_once(field, cell)
            value = None
        return _gap(field, reading, cell) if value is None else value
    if isinstance(cell, datetime.date | np.datetime64) and field.kind == "date":
        return int(np.array(cell).astype(f"datetime64[{unit}]").astype(np.int64))
    if isinstance(cell, int | float | np.number | np.bool_):
        return cell.item() if isinstance(cell, np.generic) else cell
    raise misfit(field, cell)


def _warn_once(field: Field, cell: str) -> None:
    """Log the first cell of a column that cannot be read, and so counts as missing."""
    if field.name not in _warned:
        _warned.add(field.name)
        LOGGER.warning(
            "%r: %r cannot be read; it counts as missing, as such cells did in training",
            field.name,
            cell[:60],
        )


def _gap(field: Field, reading: CellReading, cell: object) -> float | int:
    """Return the value that stands for a missing cell."""
    whole = np.dtype(field.dtype).kind in "biu"
    if reading.fill is not None:
        return round(reading.fill) if whole else reading.fill
    if whole:
        raise misfit(field, cell)
    return float("nan")


def misfit(field: Field, value: object, advice: str = "") -> RowError:
    """Return the error that refuses a value."""
    shown = repr(value.item() if isinstance(value, np.generic) else value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return RowError(f"{field.name!r}: expected {field.dtype}, got {shown}{advice}")
