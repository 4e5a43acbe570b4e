"""How much one request may ask for, checked before anything is allocated for it.

A few bytes can announce a tensor of many gigabytes, so every protocol asks here with the shape it was sent, the number
of rows or the length of its body, and converts values only then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stoker.serve.http.messages import HttpError
from stoker.serve.http.settings import Settings
from stoker.serve.rows import Rows
from stoker.serve.signature import Field

# NumPy takes 64 dimensions, older versions of it 32; nothing that is served has nearly as many.
_MOST_DIMENSIONS = 32
# JSON of fewer bytes is parsed at once: it cannot become much.
_SMALL_JSON = 128 << 10
# Lists, objects and values beside those of rows: names, parameters, outputs.
_BESIDE_ROWS = 10_000


def check_rows(count: int, settings: Settings) -> None:
    """Check how many rows a request has.

    Raises:
        HttpError: too many.
    """
    if count > settings.rows:
        raise HttpError(400, f"{count} rows are too many; the limit is {settings.rows} per request")


def check_shape(name: str, shape: Sequence[int], item_bytes: int, settings: Settings) -> int:
    """Check the shape of a tensor, whose first size is the number of rows.

    Returns:
        How many bytes it takes.

    Raises:
        HttpError: it has too many dimensions, impossible sizes, too many rows, or takes more bytes than a body may.
    """
    if len(shape) > _MOST_DIMENSIONS:
        raise HttpError(
            400, f"{name!r}: {len(shape)} dimensions are too many; the limit is {_MOST_DIMENSIONS}"
        )
    if any(size < 0 for size in shape):
        raise HttpError(400, f"{name!r}: shape {list(shape)} has a negative size")
    if shape:
        check_rows(shape[0], settings)
    size = math.prod(shape) * item_bytes
    if size > settings.body_bytes:
        raise HttpError(
            400, f"{name!r}: shape {list(shape)} takes {size} bytes; the limit is {settings.body_bytes}"
        )
    return size


def check_json(body: bytes, fields: Sequence[Field], settings: Settings) -> None:
    """Check how many values a large JSON body has, without parsing it: `{}` is 3 bytes there, and 64 in memory.

    Only where the inputs say how many values rows have. Braces and commas may stand in texts, too, so inputs of texts
    are not checked.

    Raises:
        HttpError: more than the most rows of these inputs can have.
    """
    if len(body) <= _SMALL_JSON or any(one.dtype == "string" or None in one.shape for one in fields):
        return
    values = body.count(b",") + body.count(b"{") + body.count(b"[")
    most = settings.rows * (2 + sum(map(_values_in_row, fields))) + _BESIDE_ROWS
    if values > most:
        raise HttpError(400, f"the body has about {values} values: {settings.rows} rows have at most {most}")


def _values_in_row(field: Field) -> int:
    """The most lists, objects and commas that JSON has for one row of an input whose sizes are fixed."""
    sizes = [size or 0 for size in field.shape]
    lists_and_values = sum(math.prod(sizes[:end]) for end in range(len(sizes) + 1))
    return 3 * lists_and_values  # each may be an object (base64) within a list, and has a comma


def check_columns(columns: Any, settings: Settings) -> None:
    """Check the rows of columns as JSON has them: lists, or a dict of lists.

    Raises:
        HttpError: one has too many.
    """
    if isinstance(columns, list):
        check_rows(len(columns), settings)
    elif isinstance(columns, dict):
        for one in columns.values():
            if isinstance(one, list):
                check_rows(len(one), settings)


def check_context(size: int, examples: int, settings: Settings) -> None:
    """Check a context of so many bytes, which every example repeats.

    Raises:
        HttpError: the examples would take more bytes than a body may.
    """
    if size * examples > settings.body_bytes:
        raise HttpError(
            400,
            f"a context of {size} bytes for each of {examples} examples takes {size * examples} bytes; "
            f"the limit is {settings.body_bytes}",
        )


def check_converted(fields: Sequence[Field], rows: Rows, settings: Settings) -> None:
    """Check rows that are ready to be answered.

    Raises:
        HttpError: there are none or too many, or a string is too long.
    """
    if rows.count == 0:
        raise HttpError(400, "there are no rows")
    check_rows(rows.count, settings)
    for field, array in zip(fields, rows.arrays, strict=True):
        if field.dtype == "string":
            longest = max(map(len, array.ravel()), default=0)
            if longest > settings.string_bytes:
                raise HttpError(
                    400,
                    f"{field.name!r}: a string of {longest} is too long: at most {settings.string_bytes}",
                )
