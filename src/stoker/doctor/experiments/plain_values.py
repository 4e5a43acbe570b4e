"""Attributes of ops as plain data that JSON can hold, and back."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


class NotPlain(Exception):
    """A file cannot hold this value."""


def is_json(value: object) -> bool:
    """Return whether JSON can hold the value; a tuple comes back as a list."""
    if isinstance(value, (list, tuple)):
        return all(map(is_json, value))
    return value is None or isinstance(value, (bool, int, float, str))


def to_plain(value: Any) -> Any:
    """Return an attribute of an op as plain data.

    Raises:
        NotPlain: the value is not plain, such as the function of a dataset.
    """
    import tensorflow as tf

    if isinstance(value, tf.DType):
        return {"dtype": value.as_datatype_enum}
    if isinstance(value, tf.TensorShape):
        return {"shape": None if value.rank is None else value.as_list()}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [to_plain(one) for one in value]
    if isinstance(value, np.generic):
        return value.item()
    if not is_json(value):
        raise NotPlain
    return value


def from_plain(data: Any) -> Any:
    """Return the value that `to_plain` made this data from."""
    import tensorflow as tf

    if isinstance(data, list):
        return [from_plain(one) for one in data]
    if not isinstance(data, dict):
        return data
    ((kind, value),) = data.items()
    if kind == "dtype":
        return tf.as_dtype(value)
    return tf.TensorShape(value) if kind == "shape" else base64.b64decode(value)
