"""Turn rows in any of the usual forms into one array for each input: checked, converted, in the signature's order.

One row or many: a dict of values or of columns, a list of dicts, an array or nested lists (of a single input), a tuple
of one array for each input, a pandas or polars frame. Images may be the bytes of their files. A row of a table may have
the form that it has in its file (`table_cells`). An error is one line that names the field.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from stoker.serve import images, table_cells
from stoker.serve.signature import UNITS, Array, Field, TensorField
from stoker.serve.table_cells import RowError, is_table

__all__ = ["UNITS", "InputRows", "RowError", "as_asked", "as_rows", "as_tensors", "refuse_booleans"]


@dataclass(frozen=True)
class InputRows:
    """Arrays with the rows along their first axis, in the order of the inputs.

    Attributes:
        alone: whether a bare row was given.
        joins: whether the rows may be answered together with other requests' rows.
    """

    arrays: list[Array]
    count: int
    alone: bool
    joins: bool = True


@runtime_checkable
class FrameLike(Protocol):
    """A frame of pandas or polars."""

    @property
    def columns(self) -> Iterable[str]: ...
    def to_numpy(self) -> Array: ...
    def __getitem__(self, name: str) -> ColumnLike: ...


class ColumnLike(Protocol):
    """A column of a frame."""

    def to_numpy(self) -> Array: ...


def as_rows(fields: Sequence[Field], given: object, most_pixels: int | None = None) -> InputRows:
    """Convert rows to arrays.

    Args:
        fields: the inputs.
        given: one row, or many.
        most_pixels: the most pixels that image files of a column may hold; None for any number.

    Raises:
        RowError: the rows do not fit.
    """
    usual = _convert_plainly(fields[0], given) if len(fields) == 1 and not is_table(fields) else None
    if usual is not None:
        return InputRows([usual], len(usual), False)
    values = _columns(fields, given)
    arrays = [_array(field, value, most_pixels) for field, value in zip(fields, values, strict=True)]
    alone = {array.ndim == len(field.shape) for field, array in zip(fields, arrays, strict=True)}
    if len(alone) > 1:
        raise RowError(f"some inputs are one row and others several: {_shapes(fields, arrays)}")
    (bare,) = alone
    if bare:
        arrays = [array[None] for array in arrays]
    counts = {len(array) for array in arrays}
    if len(counts) > 1:
        raise RowError(f"the inputs have different numbers of rows: {_shapes(fields, arrays)}")
    return InputRows(arrays, counts.pop(), bare)


def as_asked(
    fields: Sequence[Field],
    given: object,
    alone: str = "an input's first dimension must be the number of rows",
) -> InputRows:
    """Convert rows that come over the network, where a small request must not become many pixels.

    Raises:
        RowError: the rows do not fit; `alone` is the message for a bare row, which no protocol allows.
    """
    rows = as_rows(fields, given, images.MOST_PIXELS)
    if rows.alone:
        raise RowError(alone)
    return rows


def as_tensors(fields: Sequence[TensorField], given: object, joins: bool) -> InputRows:
    """Convert the tensors of a model that Stoker did not export; `check_shapes` checks their sizes.

    Args:
        fields: the inputs.
        given: a dict of tensors, a list of dicts (their values are stacked), or the tensor of a single input.
        joins: whether the model may answer rows of several requests together; it does so if their shapes are as
            declared.

    Raises:
        RowError: an input is missing, unknown, or of another type.
    """
    arrays = [convert_values(field, one) for field, one in zip(fields, _columns(fields, given), strict=True)]
    counts = {array.shape[0] if array.ndim else None for array in arrays}
    count = counts.pop() if len(counts) == 1 else None
    alike = joins and bool(count) and all(map(_is_as_declared, fields, arrays))
    return InputRows(arrays, count or 1, False, alike)


def refuse_booleans(fields: Sequence[Field], given: object) -> None:
    """Refuse true and false for numbers in a request, as TensorFlow Serving does. The columns of a table take them.

    This looks at every value of lists, so callers first look for the words in a body that is JSON.

    Raises:
        RowError: a value for a number is a boolean.
    """
    rows = given if isinstance(given, list) and given and isinstance(given[0], Mapping) else [given]
    for field in fields:
        if field.kind or field.dtype in ("string", "bool"):
            continue
        for row in rows:
            found = _find_boolean(row.get(field.name) if isinstance(row, Mapping) else row)
            if found is not None:
                raise _misfit(field, found)


def _find_boolean(given: object) -> bool | None:
    """Return a boolean among the values of an array or of nested lists; None if there is none."""
    if isinstance(given, np.ndarray):
        if given.dtype.kind == "b":
            return bool(given.flat[0]) if given.size else False
        given = given.ravel().tolist() if given.dtype.kind == "O" else None
    waiting = [given]
    while waiting:
        one = waiting.pop()
        if isinstance(one, bool):
            return one
        if isinstance(one, list):
            waiting.extend(one)
    return None


def check_shapes(fields: Sequence[TensorField], rows: InputRows, any_rows: bool) -> None:
    """Refuse tensors that have other sizes than the signature declares; what it leaves free, the model decides.

    Sizes of 1 at the end may be left out, as clients of TensorFlow Serving do: a list of numbers for `[?, 1]`. And old
    exporters declare `[]` for tensors of any shape.

    Args:
        fields: the inputs.
        rows: the tensors.
        any_rows: whether the first dimension is free whatever the signature declares.

    Raises:
        RowError: a tensor does not fit.
    """
    for field, array in zip(fields, rows.arrays, strict=True):
        declared = field.declared
        if declared and not _fits_declared(declared, array.shape, any_rows):
            raise RowError(
                f"{field.name!r}: the model takes a tensor of shape {_sizes(declared)}, got {list(array.shape)}"
            )


def _fits_declared(declared: tuple[int | None, ...], shape: tuple[int, ...], any_rows: bool) -> bool:
    if len(shape) > len(declared) or any(size != 1 for size in declared[len(shape) :]):
        return False
    checked = zip(declared, shape, strict=False)
    return all(
        size is None or size == found or (any_rows and place == 0)
        for place, (size, found) in enumerate(checked)
    )


def _is_as_declared(field: TensorField, array: Array) -> bool:
    declared = field.declared
    return (
        declared is not None
        and array.ndim == len(declared)
        and all(size in (None, found) for size, found in zip(declared, array.shape, strict=True))
    )


def _convert_plainly(field: Field, given: object) -> Array | None:
    """Convert the usual rows of one input: an array that fits, or lists of numbers as in JSON; None for others."""
    if type(given) is dict and len(given) == 1:
        given = given.get(field.name)
    if type(given) is list and field.dtype in ("float32", "float64"):
        try:
            found = np.asarray(given)
        except ValueError:
            return None
        if (
            found.dtype.kind in "biuf"
            and found.ndim == len(field.shape) + 1
            and found.shape[1:] == field.shape
        ):
            return found.astype(field.dtype)
    elif (
        type(given) is np.ndarray
        and given.ndim
        and given.dtype == field.dtype
        and given.shape[1:] == field.shape
    ):
        return given
    return None


def _shapes(fields: Sequence[Field], arrays: list[Array]) -> str:
    return ", ".join(f"{field.name} {list(array.shape)}" for field, array in zip(fields, arrays, strict=True))


def _columns(fields: Sequence[Field], given: object) -> list[object]:
    """Return a value for each field."""
    if is_table(fields) and isinstance(given, Mapping):
        return table_cells.columns_of_dict(fields, given)
    if isinstance(given, Mapping):
        unknown = [name for name in given if not any(field.name == name for field in fields)]
        if unknown:
            raise RowError(f"there is no input {unknown[0]!r}: the inputs are {_list_names(fields)}")
        lost = next((field.name for field in fields if field.name not in given), None)
        if lost is not None:
            raise RowError(f"there is no value for {lost!r}: the inputs are {_list_names(fields)}")
        return [given[field.name] for field in fields]
    if isinstance(given, Sequence) and given and isinstance(given[0], Mapping):
        if is_table(fields):
            return table_cells.columns_of_rows(fields, given)
        return _columns_of_dicts(fields, given)
    if isinstance(given, FrameLike):
        return _columns_of_frame(fields, given)
    if len(fields) == 1:
        return [given]
    if isinstance(given, tuple) and len(given) == len(fields):
        return list(given)
    raise RowError(
        f"rows of several inputs must be dicts with {_list_names(fields)}; got {type(given).__name__}"
    )


def _columns_of_dicts(fields: Sequence[Field], rows: Sequence[Mapping[str, object]]) -> list[object]:
    names = {field.name for field in fields}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise RowError(f"row {number + 1} must be a dict like the first, got {type(row).__name__}")
        if row.keys() != names:
            extra = [name for name in row if name not in names]
            lost = [name for name in names if name not in row]
            wrong = (
                f"has no value for {sorted(lost)[0]!r}"
                if lost
                else f"has {extra[0]!r}, which is not an input"
            )
            raise RowError(f"row {number + 1} {wrong}: the inputs are {_list_names(fields)}")
    return [[row[field.name] for row in rows] for field in fields]


def _columns_of_frame(fields: Sequence[Field], frame: FrameLike) -> list[object]:
    """Return the columns of the inputs; leave out all others, such as the label."""
    names = set(frame.columns)
    if len(fields) == 1 and fields[0].name not in names:
        return [frame.to_numpy()]
    if is_table(fields):
        return table_cells.columns_of_frame(
            fields, list(frame.columns), {str(name): frame[name].to_numpy() for name in frame.columns}
        )
    lost = [field.name for field in fields if field.name not in names]
    if lost:
        raise RowError(f"the frame has no column {lost[0]!r}: the inputs are {_list_names(fields)}")
    return [frame[field.name].to_numpy() for field in fields]


def _list_names(fields: Sequence[Field]) -> str:
    return ", ".join(str(field) for field in fields)


def _array(field: Field, value: object, most_pixels: int | None) -> Array:
    """Convert one field's values to its type."""
    if images.takes_files(field):
        try:
            value = images.with_pixels(field, value, most_pixels)
        except images.ImageFault as fault:
            raise RowError(f"{field.name!r}: {fault}") from None
    found = convert_values(field, value)
    shape = found.shape if found.ndim == len(field.shape) else found.shape[1:]
    fits = len(shape) == len(field.shape) and all(
        size is None or size == given for size, given in zip(field.shape, shape, strict=True)
    )
    if not fits:
        if not field.shape:
            got = f"a list of {shape[0]}" if len(shape) == 1 else f"an array of shape {list(shape)}"
            raise RowError(f"{field.name!r}: the input takes one value per row, got {got}")
        raise RowError(
            f"{field.name!r}: a row has shape {_sizes(field.shape)}, got {list(shape)}{_advice(field)}"
        )
    return found


def convert_values(field: Field, value: object) -> Array:
    """Convert values of any shape to an array of the field's type."""
    found = table_cells.read_cells(field, _plain(field, value))
    if found.dtype == field.dtype:
        return found
    found = _dates(field, found) if field.kind == "date" else found
    return _texts(field, found) if field.dtype == "string" else _numbers(field, found)


def _sizes(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


def _plain(field: Field, value: object) -> Array:
    if type(value) is np.ndarray:
        return value
    numpy = getattr(value, "numpy", None)  # an eager tensor
    try:
        if field.dtype == "string" and not callable(numpy):
            return np.array(value, dtype=object)  # bytes keep their trailing zeros
        found = np.asarray(numpy() if callable(numpy) else value)
        # NumPy has turned numbers among texts into texts; the error must name the number.
        return (
            np.array(value, dtype=object) if found.dtype.kind in "US" and isinstance(value, list) else found
        )
    except (ValueError, TypeError):
        raise RowError(
            f"{field.name!r}: the rows differ in shape; one has {_sizes(field.shape)}{_advice(field)}"
        ) from None


def _texts(field: Field, array: Array) -> Array:
    if array.dtype.kind in "SU":
        return array.astype(object)
    missing = field.missing if field.kind == "category" else ""
    if array.dtype.kind != "O":
        raise _misfit(field, array.ravel()[0] if array.size else array.dtype)
    flat = array.ravel()
    absent = [field.kind != "" and (one is None or one != one) for one in flat]
    for one, gone in zip(flat, absent, strict=True):
        if not gone and not isinstance(one, str | bytes):
            raise _misfit(field, one)
    if not any(absent):
        return array
    filled = np.empty(len(flat), object)
    filled[:] = [missing if gone else one for one, gone in zip(flat, absent, strict=True)]
    return filled.reshape(array.shape)


def _numbers(field: Field, array: Array) -> Array:
    """Convert to numbers of the field's type; for an integer type, they must have no fraction."""
    dtype = np.dtype(field.dtype)
    if array.dtype.kind == "O":
        array = _unbox(field, array)
    if array.dtype.kind not in "biuf":
        raise _misfit(field, array.ravel()[0] if array.size else array.dtype)
    if dtype.kind not in "biu":
        return array.astype(dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(dtype)
    same = cast == array
    if not np.all(same):
        raise _misfit(field, array[~same].ravel()[0])
    return cast


def _unbox(field: Field, array: Array) -> Array:
    """Convert Python's numbers to NumPy's; None becomes a missing one, which only columns of a table may have."""
    for one in array.ravel():
        if one is None and not field.kind:
            if _advice(field):
                raise _misfit(field, one)
            raise RowError(
                f"{field.name!r}: expected {field.dtype}, got null (None): the model has no rule for missing values"
            )
        if one is not None and not isinstance(one, int | float | np.number | np.bool_):
            raise _misfit(field, one)
    whole = np.dtype(field.dtype).kind in "iu"
    try:
        return array.astype(np.int64 if whole else np.float64)
    except (TypeError, ValueError, OverflowError):  # None, NaN, infinity, or a number that is too large
        bad = next(one for one in array.ravel() if one is None or not -(2**63) <= one < 2**63)
        raise _misfit(field, bad) from None


def _dates(field: Field, array: Array) -> Array:
    """Convert dates as people write them to counts of the unit since 1970."""
    if array.dtype.kind not in "OUM":
        return array
    if array.dtype.kind == "O" and not any(
        isinstance(one, str | datetime.date | np.datetime64) for one in array.ravel()
    ):
        return array
    for one in array.ravel() if array.dtype.kind != "M" else ():
        # NumPy accepts more than dates: "NaT" and "" for a missing one, and "today" and "now", which change.
        if isinstance(one, str) and not one[:1].isdigit() and one[:1] not in ("-", "+"):
            raise _misfit(field, one)
    try:
        moments = array.astype(f"datetime64[{UNITS.get(field.unit, field.unit)}]")
    except (ValueError, TypeError, OverflowError):
        raise _misfit(field, array.ravel()[0]) from None
    missing = np.isnat(moments)
    if not missing.any():
        return moments.astype(np.int64)
    if np.dtype(field.dtype).kind != "f":
        raise _misfit(field, array[missing].ravel()[0])
    return np.where(missing, np.nan, moments.astype(np.int64).astype(np.float64))


def _misfit(field: Field, value: object) -> RowError:
    return table_cells.misfit(field, value, _advice(field))


def _advice(field: Field) -> str:
    """Say what else to send, if the type alone does not."""
    return f": {images.describe_expected(field)}" if images.takes_files(field) else ""
