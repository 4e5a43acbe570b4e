"""Turn the protocol's tensors and examples into rows, and outputs into tensors.

A tensor may give one value for its whole shape, so a few bytes can ask for any amount of memory. Shapes are therefore
checked before an array is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from stoker.errors import first_line
from stoker.serve.examples import as_bytes
from stoker.serve.images import takes_files
from stoker.serve.plane import limits
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rows import InputRows, as_asked
from stoker.serve.signature import Array, Field
from stoker.tf_internals.types import ProtoMessage
from stoker.units import quantity

_EMPTY_TENSOR = type(tf.make_tensor_proto(0))
# Types whose values protobuf stores as NumPy does, with the key before them: of float_val and of double_val.
_PACKED = {"float32": b"\x2a", "float64": b"\x32"}
_VALUES = {
    "float16": "half_val", "bfloat16": "half_val", "int8": "int_val", "int16": "int_val", "int32": "int_val",
    "uint8": "int_val", "uint16": "int_val", "int64": "int64_val", "bool": "bool_val", "uint32": "uint32_val",
    "uint64": "uint64_val",
}  # fmt: skip


def read_tensors(tensors: Mapping[str, ProtoMessage]) -> dict[str, Array]:
    """Make arrays from named tensors; raise RequestError if one is not a valid tensor."""
    given = {}
    for name, tensor in tensors.items():
        try:
            given[name] = tf.make_ndarray(tensor)
        except (TypeError, ValueError, KeyError) as error:
            raise RequestError(400, f"{name!r} is not a tensor: {first_line(error)}") from None
    return given


def check_sizes(
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
    """Return the bytes of one value; for a string, those of its pointer."""
    try:
        dtype = tf.as_dtype(tensor.dtype)
    except TypeError:
        raise RequestError(400, f"{name!r} is not a tensor: unknown type number {tensor.dtype}") from None
    return 8 if dtype == tf.string else max(1, int(dtype.size or 0))


def _bytes_of_repeats(tensor: ProtoMessage, shape: list[int]) -> int:
    """Return the bytes of the strings that are not sent, for which the last one is repeated."""
    missing = math.prod(shape) - len(tensor.string_val)
    return max(0, missing) * len(tensor.string_val[-1]) if tensor.string_val else 0


def tensor_of(field: Field, array: Array) -> bytes:
    """Serialize an output as a tensor, with its values in the field of their type, where clients look for them."""
    plain = np.asarray(array)
    dtype = tf.as_dtype(field.dtype)
    made = _EMPTY_TENSOR()
    made.dtype = dtype.as_datatype_enum
    for size in plain.shape:
        made.tensor_shape.dim.add(size=size)
    if field.dtype in _PACKED:
        # These bytes are exactly the message's: a list of numbers would take ten times as long.
        data = np.ascontiguousarray(plain, f"<{np.dtype(field.dtype).str[1:]}").tobytes()
        head: bytes = made.SerializeToString()
        return head + _PACKED[field.dtype] + _encode_length(len(data)) + data
    if field.dtype in _VALUES:
        given = plain.view(np.uint16) if field.dtype in ("float16", "bfloat16") else plain
        getattr(made, _VALUES[field.dtype]).extend(given.ravel().tolist())
    elif field.dtype == "string":
        made.string_val.extend(map(as_bytes, plain.ravel().tolist()))
    else:
        made = tf.make_tensor_proto(plain, dtype, plain.shape)
    serialized: bytes = made.SerializeToString()
    return serialized


def _encode_length(length: int) -> bytes:
    """Encode a number in protobuf's form of seven bits a byte."""
    found = bytearray()
    while length > 127:
        found.append(length & 127 | 128)
        length >>= 7
    found.append(length)
    return bytes(found)


def rows_of_examples(fields: Sequence[Field], given: ProtoMessage, settings: ServerSettings) -> InputRows:
    """Make rows from the examples of an `Input`, each with the features of the context.

    Raises:
        RequestError: there are no examples, or too many.
        RowError: the examples do not fit.
    """
    limits.check_examples(given, settings)
    kind = given.WhichOneof("kind")
    held = given.example_list_with_context if kind == "example_list_with_context" else given.example_list
    context = held.context.features.feature if kind == "example_list_with_context" else {}
    by_name = {field.name: field for field in fields}
    found = []
    for example in held.examples:
        features = {**context, **example.features.feature}
        found.append({name: _value(by_name.get(name), one) for name, one in features.items()})
    return as_asked(fields, found)


def _value(field: Field | None, feature: ProtoMessage) -> object:
    """Return the values of a feature in the shape of its input."""
    kind = feature.WhichOneof("kind")
    values = list(getattr(feature, kind).value) if kind else []
    if field is None or None in field.shape:
        return values
    if len(values) == 1 and (field.shape == () or (kind == "bytes_list" and takes_files(field))):
        return values[0]
    if field.shape == () and not values and field.kind:
        return None  # the missing value of a column
    try:
        array = np.empty(len(values), object)
        array[:] = values
        return array.reshape(field.shape).tolist()
    except ValueError:
        takes = f"a row has shape {list(field.shape)}" if field.shape else "the input takes one value per row"
        raise RequestError(400, f"{field.name!r}: {takes}, got {quantity(len(values), 'value')}") from None
