"""Tensors and examples of the protocol become rows, and outputs become tensors.

A tensor may give one value for all of its shape, so that a few bytes ask for any amount of memory: shapes are checked
before there is an array.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from stoker.serve.images import takes_files
from stoker.serve.plane import limits
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rows import InputRows, as_asked
from stoker.serve.signature import Array, Field
from stoker.tf_internals.types import ProtoMessage


def rows_of_tensors(
    fields: Sequence[Field], tensors: Mapping[str, ProtoMessage], settings: ServerSettings
) -> InputRows:
    """Make rows of named tensors, whose first size is the number of rows.

    Raises:
        RequestError: one is no tensor, or too large.
        RowError: they do not fit.
    """
    _check_sizes(fields, tensors, settings)
    given = {}
    for name, tensor in tensors.items():
        try:
            given[name] = tf.make_ndarray(tensor)
        except (TypeError, ValueError, KeyError) as error:
            line = (str(error).splitlines() or [""])[0]
            raise RequestError(400, f"{name!r} is not a tensor: {line}") from None
    return as_asked(fields, given)


def _check_sizes(
    fields: Sequence[Field], tensors: Mapping[str, ProtoMessage], settings: ServerSettings
) -> None:
    """Refuse tensors that would take too many bytes as arrays."""
    names = {field.name for field in fields}
    total = 0
    for name, tensor in tensors.items():
        if name not in names:
            raise RequestError(
                400, f"there is no input {name!r}: the inputs are {', '.join(map(str, fields))}"
            )
        if tensor.tensor_shape.unknown_rank:
            raise RequestError(400, f"{name!r} is not a tensor: it has no shape")
        shape = [one.size for one in tensor.tensor_shape.dim]
        total += limits.check_shape(name, shape, _item_bytes(name, tensor), settings) + _bytes_of_repeats(
            tensor, shape
        )
    if total > settings.body_bytes:
        raise RequestError(400, f"the inputs take {total} bytes; the limit is {settings.body_bytes}")


def _item_bytes(name: str, tensor: ProtoMessage) -> int:
    """Bytes of one value; for a string, those of its pointer."""
    try:
        dtype = tf.as_dtype(tensor.dtype)
    except TypeError:
        raise RequestError(400, f"{name!r} is not a tensor: unknown type number {tensor.dtype}") from None
    return 8 if dtype == tf.string else max(1, int(dtype.size or 0))


def _bytes_of_repeats(tensor: ProtoMessage, shape: list[int]) -> int:
    """Bytes of the strings that are not sent: the last one is repeated for them."""
    missing = math.prod(shape) - len(tensor.string_val)
    return max(0, missing) * len(tensor.string_val[-1]) if tensor.string_val else 0


def tensor_of(field: Field, array: Array) -> bytes:
    """Serialize an output as a tensor."""
    plain = np.asarray(array)
    values = plain.tolist() if plain.dtype == object else plain
    made: bytes = tf.make_tensor_proto(values, field.dtype, plain.shape).SerializeToString()
    return made


def rows_of_examples(fields: Sequence[Field], given: ProtoMessage, settings: ServerSettings) -> InputRows:
    """Make rows of the examples of an `Input`, each with what the context has.

    Raises:
        RequestError: there are none, or too many.
        RowError: they do not fit.
    """
    kind = given.WhichOneof("kind")
    held = given.example_list_with_context if kind == "example_list_with_context" else given.example_list
    if not held.examples:
        raise RequestError(400, "the input has no examples")
    limits.check_rows(len(held.examples), settings)
    context = {}
    if kind == "example_list_with_context":
        limits.check_context(held.context.ByteSize(), len(held.examples), settings)
        context = held.context.features.feature
    by_name = {field.name: field for field in fields}
    found = []
    for example in held.examples:
        features = {**context, **example.features.feature}
        found.append({name: _value(by_name.get(name), one) for name, one in features.items()})
    return as_asked(fields, found)


def _value(field: Field | None, feature: ProtoMessage) -> object:
    """The values of a feature in the shape of its input."""
    kind = feature.WhichOneof("kind")
    values = list(getattr(feature, kind).value) if kind else []
    if field is None or None in field.shape:
        return values
    if len(values) == 1 and (field.shape == () or (kind == "bytes_list" and takes_files(field))):
        return values[0]
    if field.shape == () and not values and field.kind:
        return None  # a column's missing value
    try:
        array = np.empty(len(values), object)
        array[:] = values
        return array.reshape(field.shape).tolist()
    except ValueError:
        sizes = list(field.shape)
        raise RequestError(
            400, f"{field.name!r}: a row has shape {sizes}, got {len(values)} values"
        ) from None
