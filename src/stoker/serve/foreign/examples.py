"""Serialize examples that came as JSON, in the form that models parse."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from stoker.serve.plane.errors import RequestError

_LARGEST = 2**63


def serialize_example(features: Mapping[str, object]) -> bytes:
    """Serialize an object of features: integers, floats, texts or bytes, one value or a list.

    Raises:
        RequestError: a feature is of another type, or mixes types.
    """
    made = tf.train.Example()
    for name, value in features.items():
        values = value if isinstance(value, list) else [value]
        feature = made.features.feature[name]
        if all(isinstance(one, str | bytes) for one in values):
            feature.bytes_list.value.extend(one.encode() if isinstance(one, str) else one for one in values)
        elif all(isinstance(one, int) and -_LARGEST <= one < _LARGEST for one in values):
            feature.int64_list.value.extend(map(int, values))
        elif all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
            feature.float_list.value.extend(map(float, values))
        else:
            raise RequestError(400, f"{name!r} must be numbers or strings, one or a list of the same kind")
    serialized: bytes = made.SerializeToString()
    return serialized
