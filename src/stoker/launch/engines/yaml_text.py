"""Plain values as YAML: enough for a manifest, and no library for it."""

from __future__ import annotations

import json
import re
from typing import Any

# What cannot be taken for a number, a truth value, a date or the beginning of something else.
_PLAIN = re.compile(r"[A-Za-z/][\w./-]*")
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}


def dump(value: Any) -> str:
    """A whole document."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict) and value:
        lines = []
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                lines += [f"{_scalar(key)}:", *(f"  {line}" for line in _lines(inner))]
            else:
                lines.append(f"{_scalar(key)}: {_scalar(inner)}")
        return lines
    if isinstance(value, list) and value:
        lines = []
        for inner in value:
            first, *rest = _lines(inner)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        return lines
    return [_scalar(value)]


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON is YAML, but for characters that take two of its escapes.
    return _PAIR.sub(lambda pair: f"\\U{ord(json.loads(chr(34) + pair[0] + chr(34))):08x}", json.dumps(value))
