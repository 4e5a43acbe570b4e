"""From JSON to the dataclasses of this package, by their annotations: there is one list of fields.

Reading is strict where Stoker knows a field: a value of another type is damage, said with the field, what it must be
and what it is (`timeline.windows[0].steps must be a list, not 3`). What it does not know, a later Stoker's field, is
kept in `extra` and written again.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from stoker.records.section import EXTRA

T = TypeVar("T")
Reader = Callable[[Any], Any]

_SCALARS: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("text", (str,)),
    int: ("a whole number", (int,)),
    # JSON has one kind of number: `3` is a float too.
    float: ("a number", (float, int)),
    bool: ("true or false", (bool,)),
    type(None): ("null", (type(None),)),
}


class Damaged(ValueError):
    """A value is not what its field says. `path` leads to it, from the inside out."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    def inside(self, part: str) -> Damaged:
        """The same, seen from one level further out."""
        self.path.append(part)
        return self

    def __str__(self) -> str:
        return f"{''.join(reversed(self.path)).lstrip('.') or 'it'} {self.problem}"


def read(kind: type[T], data: Any) -> T:
    """The value of that type in JSON data.

    Raises:
        Damaged: it is none.
    """
    reader: Callable[[Any], T] = _reader(kind)  # type: ignore[arg-type]
    return reader(data)


def _wrong(expected: str, value: Any) -> Damaged:
    shown = repr(value)
    return Damaged(f"must be {expected}, not {shown if len(shown) <= 40 else shown[:37] + '...'}")


@cache
def _reader(annotation: Any) -> Reader:
    """What reads a value of this type; made once for each."""
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
    def reader(value: Any) -> Any:
        # Not isinstance: to Python, true is a number.
        if type(value) not in allowed:
            raise _wrong(expected, value)
        return value

    return reader


def _optional(inner: tuple[Any, ...]) -> Reader:
    """`X | None`; other unions are not needed."""
    (kind,) = (part for part in inner if part is not type(None))
    below = _reader(kind)
    return lambda value: None if value is None else below(value)


def _list(below: Reader) -> Reader:
    def reader(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _wrong("a list", value)
        found: list[Any] = []
        try:
            for item in value:
                found.append(below(item))
        except Damaged as error:
            raise error.inside(f"[{len(found)}]") from None
        return found

    return reader


def _dict(below: Reader) -> Reader:
    def reader(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong("an object", value)
        return {name: _at(name, below, item) for name, item in value.items()}

    return reader


def _at(name: str, below: Reader, value: Any) -> Any:
    try:
        return below(value)
    except Damaged as error:
        raise error.inside(f".{name}") from None


def _row(kind: Any) -> Reader:
    """A NamedTuple is a list in JSON; what a later Stoker appends is left out."""
    columns = tuple(_reader(hint) for hint in get_type_hints(kind).values())
    least = len(columns) - len(kind._field_defaults)

    def reader(value: Any) -> Any:
        if type(value) is not list or len(value) < least:
            raise _wrong(f"a list of {least} values or more", value)
        try:
            return kind(*[column(item) for column, item in zip(columns, value, strict=False)])
        except Damaged as error:
            number = next(n for n, item in enumerate(value) if _refused(columns[n], item))
            raise error.inside(f"[{number}]") from None

    return reader


def _refused(column: Reader, item: Any) -> bool:
    try:
        column(item)
    except Damaged:
        return True
    return False


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

    def reader(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong("an object", value)
        for name in required:
            if name not in value:
                raise Damaged("is missing").inside(f".{name}")
        known = {name: _at(name, readers[name], item) for name, item in value.items() if name in readers}
        unknown = {name: item for name, item in value.items() if name not in readers}
        return kind(**known, **({EXTRA: unknown} if keeps and unknown else {}))

    return reader


def _typed_dict(kind: Any) -> Reader:
    """Names that are known must fit, others may be there: the dict stays as it is."""
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

    def reader(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong("an object", value)
        for name in sorted(kind.__required_keys__):
            if name not in value:
                raise Damaged("is missing").inside(f".{name}")
        return {
            name: _at(name, readers[name], item) if name in readers else item for name, item in value.items()
        }

    return reader
