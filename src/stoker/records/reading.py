"""Turn JSON into the dataclasses of this package by their annotations, so that fields are listed in only one place.

Reading is strict about the fields that Stoker knows: a value of another type is damage, and the error says which field,
what it must be and what it is (`timeline.windows[0].steps must be a list, not 3`). A field that only a later Stoker
knows is kept in `extra` and written again.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from stoker.records.section import EXTRA

T = TypeVar("T")
Reader = Callable[[object], Any]

_SCALARS: dict[object, tuple[str, tuple[type, ...]]] = {
    str: ("text", (str,)),
    int: ("a whole number", (int,)),
    # JSON has only one kind of number, so `3` is a float, too.
    float: ("a number", (float, int)),
    bool: ("true or false", (bool,)),
    type(None): ("null", (type(None),)),
}


class Damaged(ValueError):
    """A value does not fit its field. `path` leads to the field, from the inside out."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    def inside(self, part: str) -> Damaged:
        """Return the same error, with the name of the field around it."""
        self.path.append(part)
        return self

    def __str__(self) -> str:
        return f"{''.join(reversed(self.path)).lstrip('.') or 'it'} {self.problem}"


def read(kind: type[T], data: object) -> T:
    """Read a value of that type from JSON data.

    Raises:
        Damaged: the data does not fit the type.
    """
    annotation: Any = kind
    value: T = _reader(annotation)(data)
    return value


def _make_error(expected: str, value: object) -> Damaged:
    text = repr(value)
    return Damaged(f"must be {expected}, not {text if len(text) <= 40 else text[:37] + '...'}")


@cache
def _reader(annotation: Any) -> Reader:
    """Return the function that reads a value of this type; it is made once for each type."""
    if annotation is Any:
        return lambda value: value
    if annotation in _SCALARS:
        return _scalar(*_SCALARS[annotation])
    if dataclasses.is_dataclass(annotation):
        return _dataclass(annotation)
    if is_typeddict(annotation):
        return _typed_dict(annotation)
    if isinstance(annotation, type) and hasattr(annotation, "_fields"):
        return _row(annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is list:
        return _list(_reader(inner[0]))
    if origin is dict:
        return _dict(_reader(inner[1]))
    if origin in (Union, types.UnionType):
        return _optional(inner)
    raise TypeError(f"no way to read {annotation}")


def _scalar(expected: str, allowed: tuple[type, ...]) -> Reader:
    def reader(value: object) -> object:
        # `isinstance` would not do: to Python, true is a number.
        if type(value) not in allowed:
            raise _make_error(expected, value)
        return value

    return reader


def _optional(inner: tuple[object, ...]) -> Reader:
    """Read `X | None`; no record has another union."""
    (kind,) = (part for part in inner if part is not type(None))
    below = _reader(kind)
    return lambda value: None if value is None else below(value)


def _list(below: Reader) -> Reader:
    def reader(value: object) -> list[object]:
        if not isinstance(value, list):
            raise _make_error("a list", value)
        return _read_items(value, [below] * len(value))

    return reader


def _read_items(values: list[object], readers: Sequence[Reader]) -> list[object]:
    found: list[object] = []
    try:
        for reader, value in zip(readers, values, strict=False):
            found.append(reader(value))
    except Damaged as error:
        raise error.inside(f"[{len(found)}]") from None
    return found


def _dict(below: Reader) -> Reader:
    return lambda value: {name: _read_at(name, below, item) for name, item in _object(value).items()}


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _make_error("an object", value)
    return value


def _read_at(name: str, below: Reader, value: object) -> object:
    try:
        return below(value)
    except Damaged as error:
        raise error.inside(f".{name}") from None


def _row(kind: Any) -> Reader:
    """Read a NamedTuple, which is a list in JSON; columns that a later Stoker appends are left out."""
    columns = tuple(_reader(hint) for hint in get_type_hints(kind).values())
    least = len(columns) - len(kind._field_defaults)

    def reader(value: object) -> object:
        if not isinstance(value, list) or len(value) < least:
            raise _make_error(f"a list of {least} values or more", value)
        return kind(*_read_items(value, columns))

    return reader


def _check_present(names: Iterable[str], value: dict[str, object]) -> None:
    for name in names:
        if name not in value:
            raise Damaged("is missing").inside(f".{name}")


def _dataclass(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    fields = [f for f in dataclasses.fields(kind) if f.init and f.name != EXTRA]
    readers = {f.name: _reader(hints[f.name]) for f in fields}
    required = [
        f.name
        for f in fields
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    keeps = any(f.name == EXTRA for f in dataclasses.fields(kind))

    def reader(value: object) -> object:
        given = _object(value)
        _check_present(required, given)
        known = {name: _read_at(name, readers[name], item) for name, item in given.items() if name in readers}
        unknown = {name: item for name, item in given.items() if name not in readers}
        return kind(**known, **({EXTRA: unknown} if keeps and unknown else {}))

    return reader


def _typed_dict(kind: Any) -> Reader:
    """Check the known names and allow others; the dict stays unchanged."""
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

    def reader(value: object) -> object:
        given = _object(value)
        _check_present(sorted(kind.__required_keys__), given)
        return {
            name: _read_at(name, readers[name], item) if name in readers else item
            for name, item in given.items()
        }

    return reader
