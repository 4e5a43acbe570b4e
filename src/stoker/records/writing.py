"""Turn the dataclasses of this package into values that `json.dumps` takes.

The record of a running program is written every second, inside that program. So values that are already plain, as most
of a record is, pass through without a copy.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from stoker.records.section import ABSENT, EXTRA

Writer = Callable[[Any], Any]


def plain(value: object) -> Any:
    """Return a dataclass as dicts, lists, tuples, text and numbers."""
    kind: Any = type(value)
    writer = _writer(kind)
    return value if writer is None else writer(value)


@cache
def _writer(annotation: Any) -> Writer | None:
    """Return the function that makes values of this type plain, made once per type; None if they are plain already."""
    if dataclasses.is_dataclass(annotation):
        return _dataclass(annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _optional(next((w for w in map(_writer, inner) if w is not None), None))
    if origin is list:
        return _list(_writer(inner[0]))
    return None


def _optional(below: Writer | None) -> Writer | None:
    return None if below is None else lambda value: None if value is None else below(value)


def _list(below: Writer | None) -> Writer | None:
    return None if below is None else lambda value: [below(item) for item in value]


def _dataclass(kind: Any) -> Writer:
    hints = get_type_hints(kind)
    fields = [
        (f.name, _writer(hints[f.name]), bool(f.metadata.get(ABSENT)), f.default)
        for f in dataclasses.fields(kind)
        if f.name != EXTRA
    ]

    def writer(value: object) -> dict[str, object]:
        made = {}
        for name, below, left_out, default in fields:
            item = getattr(value, name)
            if not (left_out and item == default):
                made[name] = item if below is None else below(item)
        return {**made, **getattr(value, EXTRA, {})}

    return writer
