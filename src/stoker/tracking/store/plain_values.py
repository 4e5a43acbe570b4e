"""Convert values to forms that JSON and both databases can hold."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

# A JSON object, as `json.loads` returns it and `json.dumps` takes it.
JsonObject: TypeAlias = dict[str, Any]


def dump_compact(value: object) -> str:
    """Return compact JSON, the same for equal values; numbers that are not finite become words ("nan", "inf")."""
    return json.dumps(
        make_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def make_plain(value: object) -> Any:
    """Convert a value to what JSON can hold: text is cleaned, and anything unknown becomes its `repr`."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(name)): make_plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [make_plain(inner) for inner in value]
    # A NumPy scalar can return the Python number that it equals.
    to_python = getattr(value, "item", None)
    if callable(to_python) and getattr(value, "shape", None) == ():
        return make_plain(to_python())
    return clean_text(repr(value))


def clean_text(value: str) -> str:
    """Replace what databases reject: NUL characters and unpaired surrogates."""
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")
