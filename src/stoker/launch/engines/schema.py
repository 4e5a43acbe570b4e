"""A strict check of what is written: a field that is unknown, missing or of the wrong type is refused by its path.

A schema is made of types (`str`, `int`, `bool`, or `object` for anything), `[one]` for a list, `{str: one}` for a map
whose keys are free, a set of strings for a choice, and a dict of fields; a field that must be there ends in `!`.
"""

from __future__ import annotations

import difflib
from typing import Any

from stoker.errors import UsageError

Schema = Any


def check(value: Any, schema: Schema, path: str) -> None:
    """See that a value is as its schema says.

    Raises:
        UsageError: it is not; the line names the path, and the field that was probably meant.
    """
    if isinstance(schema, dict) and set(schema) == {str}:
        _check_type(value, dict, path)
        for key, inner in value.items():
            check(inner, schema[str], f"{path}.{key}")
    elif isinstance(schema, dict):
        _check_type(value, dict, path)
        _check_fields(value, schema, path)
    elif isinstance(schema, list):
        _check_type(value, list, path)
        for index, inner in enumerate(value):
            check(inner, schema[0], f"{path}[{index}]")
    elif isinstance(schema, frozenset):
        if value not in schema:
            raise UsageError(f"{path} is {value!r}: it must be one of {', '.join(sorted(schema))}")
    else:
        _check_type(value, schema, path)


def _check_fields(value: dict[str, Any], schema: dict[str, Schema], path: str) -> None:
    fields = {name.rstrip("!"): inner for name, inner in schema.items()}
    for name, inner in value.items():
        if name not in fields:
            near = difflib.get_close_matches(str(name), fields, 1)
            meant = f": did you mean {near[0]}?" if near else ""
            raise UsageError(f"{path} has no field {name!r}{meant}")
        check(inner, fields[name], f"{path}.{name}")
    for name in schema:
        if name.endswith("!") and name.rstrip("!") not in value:
            raise UsageError(f"{path} needs a field {name.rstrip('!')!r}")


def _check_type(value: Any, kind: type, path: str) -> None:
    # For Python a truth value is a number; for Kubernetes it is not.
    fits = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not fits:
        words = {dict: "a map", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}
        raise UsageError(f"{path} is {value!r}: it must be {words[kind]}")
