"""Between the protocol's values and arrays: tensors, and TensorFlow's examples as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.serve.http.messages import HttpError
from stoker.serve.images import takes_files
from stoker.serve.rows import Rows, as_asked
from stoker.serve.signature import Field


def rows_of_tensors(fields: Sequence[Field], tensors: Mapping[str, Any]) -> Rows:
    """Named tensors, whose first size is the number of rows.

    Raises:
        HttpError: one is no tensor.
        RowError: they do not fit.
    """
    given = {}
    for name, tensor in tensors.items():
        try:
            given[name] = tf.make_ndarray(tensor)
        except (TypeError, ValueError, KeyError) as error:
            line = (str(error).splitlines() or [""])[0]
            raise HttpError(400, f"{name!r} is no tensor: {line}") from None
    rows = as_asked(fields, given)
    if rows.alone:
        raise HttpError(400, "an input's first size must be the number of rows")
    return rows


def tensor_of(field: Field, array: Any) -> bytes:
    """An output, as a serialized tensor."""
    plain = np.asarray(array)
    values = plain.tolist() if plain.dtype == object else plain
    made: bytes = tf.make_tensor_proto(values, field.dtype, plain.shape).SerializeToString()
    return made


def rows_of_examples(fields: Sequence[Field], given: Any) -> Rows:
    """The examples of an `Input`; what its context has, all of them have.

    Raises:
        HttpError: there are none.
        RowError: they do not fit.
    """
    kind = given.WhichOneof("kind")
    held = given.example_list_with_context if kind == "example_list_with_context" else given.example_list
    if not held.examples:
        raise HttpError(400, "the input has no examples")
    context = held.context.features.feature if kind == "example_list_with_context" else {}
    by_name = {field.name: field for field in fields}
    found = []
    for example in held.examples:
        features = {**context, **example.features.feature}
        found.append({name: _value(by_name.get(name), one) for name, one in features.items()})
    return as_asked(fields, found)


def _value(field: Field | None, feature: Any) -> Any:
    """A feature's list, in the shape of its input."""
    kind = feature.WhichOneof("kind")
    values = list(getattr(feature, kind).value) if kind else []
    if field is None or None in field.shape:
        return values
    if len(values) == 1 and (field.shape == () or (kind == "bytes_list" and takes_files(field))):
        return values[0]
    if field.shape == () and not values and field.kind:
        return None  # a column's missing value
    try:
        array: Any = np.empty(len(values), object)
        array[:] = values
        return array.reshape(field.shape).tolist()
    except ValueError:
        sizes = list(field.shape)
        raise HttpError(400, f"{field.name!r}: a row has shape {sizes}, got {len(values)} values") from None
