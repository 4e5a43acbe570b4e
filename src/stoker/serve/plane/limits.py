"""Limits on how much one request may ask for, checked before anything is allocated for it.

A few bytes can announce a tensor of many gigabytes. So every protocol first checks the shape it was sent, the number of
rows or the length of the body, and only then converts values. All checks raise `RequestError`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rows import InputRows
from stoker.serve.signature import Field
from stoker.tf_internals.types import ProtoMessage
from stoker.units import quantity

# NumPy takes 64 dimensions, older versions 32; no served model has nearly as many.
_MOST_DIMENSIONS = 32
# Smaller JSON is parsed without a check: it cannot take much memory.
_SMALL_JSON = 128 << 10
# An allowance for values outside the rows: names, parameters, outputs.
_BESIDE_ROWS = 10_000


def check_rows(count: int, settings: ServerSettings) -> None:
    """Refuse too many rows."""
    if count > settings.rows:
        raise RequestError(400, f"{count} rows are too many; the limit is {settings.rows} per request")


def check_shape(name: str, shape: Sequence[int], item_bytes: int, settings: ServerSettings) -> int:
    """Refuse a tensor with too many dimensions, rows (its first dimension) or bytes. Return how many bytes it takes."""
    if len(shape) > _MOST_DIMENSIONS:
        raise RequestError(
            400, f"{name!r}: {len(shape)} dimensions are too many; the limit is {_MOST_DIMENSIONS}"
        )
    if any(size < 0 for size in shape):
        raise RequestError(400, f"{name!r}: shape {list(shape)} has a negative size")
    if shape:
        check_rows(shape[0], settings)
    size = math.prod(shape) * item_bytes
    if size > settings.body_bytes:
        raise RequestError(
            400, f"{name!r}: shape {list(shape)} takes {size} bytes; the limit is {settings.body_bytes}"
        )
    return size


def check_json(body: bytes, fields: Sequence[Field], settings: ServerSettings) -> None:
    """Refuse a large JSON body with more values than the largest number of rows can have, without parsing it.

    `{}` takes 3 bytes in JSON, and 64 in memory. Only inputs of fixed sizes can be checked. Texts may contain braces
    and commas, so inputs with texts are not checked.
    """
    if len(body) <= _SMALL_JSON or any(one.dtype == "string" or None in one.shape for one in fields):
        return
    values = body.count(b",") + body.count(b"{") + body.count(b"[")
    most = settings.rows * (2 + sum(map(_values_in_row, fields))) + _BESIDE_ROWS
    if values > most:
        raise RequestError(
            400,
            f"the body has about {values} values: at most {most} fit into {quantity(settings.rows, 'row')}",
        )


def _values_in_row(field: Field) -> int:
    """Return the most lists, objects and commas that one row of a fixed-size input can have in JSON."""
    sizes = [size or 0 for size in field.shape]
    lists_and_values = sum(math.prod(sizes[:end]) for end in range(len(sizes) + 1))
    return 3 * lists_and_values  # each may be an object (base64) within a list, and has a comma


def check_columns(columns: object, settings: ServerSettings) -> None:
    """Refuse columns with too many rows: lists, or a dict of lists."""
    if isinstance(columns, list):
        check_rows(len(columns), settings)
    elif isinstance(columns, dict):
        for one in columns.values():
            if isinstance(one, list):
                check_rows(len(one), settings)


def check_context(size: int, examples: int, settings: ServerSettings) -> None:
    """Refuse a context that takes more bytes than a body may when it is repeated for every example."""
    if size * examples > settings.body_bytes:
        raise RequestError(
            400,
            f"a context of {size} bytes for each of {quantity(examples, 'example')} takes {size * examples} bytes; "
            f"the limit is {settings.body_bytes}",
        )


def check_examples(given: ProtoMessage, settings: ServerSettings) -> None:
    """Refuse an `Input` of TensorFlow Serving with no or too many examples, or a context that takes too much."""
    kind = given.WhichOneof("kind")
    held = given.example_list_with_context if kind == "example_list_with_context" else given.example_list
    if not held.examples:
        raise RequestError(400, "the input has no examples")
    check_rows(len(held.examples), settings)
    if kind == "example_list_with_context":
        check_context(held.context.ByteSize(), len(held.examples), settings)


def check_converted(fields: Sequence[Field], rows: InputRows, settings: ServerSettings) -> None:
    """Refuse converted rows if there are none, too many, or one with a string that is too long."""
    if rows.count == 0:
        raise RequestError(400, "there are no rows")
    check_rows(rows.count, settings)
    for field, array in zip(fields, rows.arrays, strict=True):
        if field.dtype == "string":
            longest = max(map(len, array.ravel()), default=0)
            if longest > settings.string_bytes:
                raise RequestError(
                    400,
                    f"{field.name!r}: a string of {longest} is too long: at most {settings.string_bytes}",
                )
