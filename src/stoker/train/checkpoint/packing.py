"""Packs a tree of plain values into JSON, and sets the arrays and bytes in it aside to be stored as arrays.

Numbers, text, None, lists, tuples, dicts with text keys, NumPy arrays and scalars, and bytes come back as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stoker.tf_internals.types import Array

_TAG = "__stoker__"


def pack(value: object, arrays: dict[str, Array], where: str = "progress") -> object:
    """Return `value` in a form that JSON takes; its arrays go into `arrays` under names that begin with `where`.

    Raises:
        TypeError: a value cannot be stored; the message says where it is.
    """
    # np.float64 is also a float, and must come back as np.float64.
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key == _TAG:
                raise TypeError(f"{where}: the key {key!r} cannot be stored; use text")
        return {key: pack(item, arrays, f"{where}/{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [pack(item, arrays, f"{where}/{number}") for number, item in enumerate(value)]
        return items if isinstance(value, list) else {_TAG: "tuple", "items": items}
    if isinstance(value, bytes | bytearray):
        return {_TAG: "bytes", "name": _set_aside(np.frombuffer(bytes(value), np.uint8), arrays, where)}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OUSMm":
        tag = "scalar" if isinstance(value, np.generic) else "array"
        # A copy, since the file is written later and the value may change before.
        return {_TAG: tag, "name": _set_aside(np.array(value, order="C"), arrays, where)}
    raise TypeError(
        f"{where}: {type(value).__name__} cannot be stored; use numbers, text, lists, dicts, bytes or NumPy arrays"
    )


def _set_aside(array: Array, arrays: dict[str, Array], where: str) -> str:
    """Store the array under a free name and return the name.

    The key "a/b" and the key "b" in "a" want the same name.
    """
    while where in arrays:
        where += "'"
    arrays[where] = array
    return where


def unpack(value: object, arrays: Mapping[str, Array]) -> Any:
    """Return the value that `pack` was given."""
    if isinstance(value, list):
        return [unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(_TAG)
    if tag is None:
        return {key: unpack(item, arrays) for key, item in value.items()}
    if tag == "tuple":
        return tuple(unpack(item, arrays) for item in value["items"])
    array = arrays[value["name"]]
    if tag == "bytes":
        return array.tobytes()
    return array[()] if tag == "scalar" else array
