"""A strict check of a manifest against its TypedDict: an unknown, missing or mistyped field is refused by its path.

The types with which mypy checks our own manifests also check what the user adds. A library for JSON Schema would need
the same fields written a second time, bring compiled dependencies, and could not suggest a field's name.
"""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

from stoker.errors import UsageError, suggest

_TYPE_NAMES = {dict: "a map", list: "a list", str: "a string", int: "a whole number", bool: "true or false"}


def check_fields(value: object, kind: Any, path: str) -> None:
    """Check that a value fits a TypedDict, `list[...]`, `dict[str, ...]`, `Literal`, `str`, `int`, `bool` or `object`.

    Raises:
        UsageError: the value does not fit; the message names the path and, for a misspelt field, the closest name.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        _check_map(_check_type(value, dict, path), kind, path)
    elif origin is dict:
        for key, inner in _check_type(value, dict, path).items():
            check_fields(inner, arguments[1], f"{path}.{key}")
    elif origin is list:
        for index, inner in enumerate(_check_type(value, list, path)):
            check_fields(inner, arguments[0], f"{path}[{index}]")
    elif origin is Literal:
        if value not in arguments:
            raise UsageError(f"{path} must be one of {', '.join(sorted(arguments))}, not {value!r}")
    else:
        _check_type(value, kind, path)


def _check_map(value: dict[str, object], kind: Any, path: str) -> None:
    fields = get_type_hints(kind)
    for name, inner in value.items():
        if name not in fields:
            raise UsageError(f"{path} has no field {name!r}{suggest(str(name), fields)}")
        check_fields(inner, fields[name], f"{path}.{name}")
    missing = sorted(kind.__required_keys__ - set(value))
    if missing:
        raise UsageError(f"{path} needs a field {missing[0]!r}")


def _check_type(value: Any, kind: type, path: str) -> Any:
    # In Python a bool is an int; in Kubernetes it is not.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"{path} must be {_TYPE_NAMES[kind]}, not {value!r}")
    return value
