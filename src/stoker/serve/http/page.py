"""The page on which a person can try a model, and what it needs to know about that model."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

import numpy as np

from stoker.serve.bundle import Bundle
from stoker.serve.examples import Arrays
from stoker.serve.http.messages import HttpResponse
from stoker.serve.plane.models import ServedModels
from stoker.serve.plane.versions import Version
from stoker.serve.proof import read_recordings
from stoker.serve.rows import UNITS
from stoker.serve.signature import Field

_POLICY = (
    "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# An example with more values than this is not shown in a text field.
_MOST_VALUES = 4096
# The most rows to choose from, and the most categories in a list.
_MOST_EXAMPLES, _MOST_CHOICES = 8, 200


@cache
def page() -> HttpResponse:
    """Return the page itself, whose script and style are allowed by their hashes."""
    text = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    blocks = (re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))
    policy = _POLICY.format(*(" ".join(map(_hash, found)) for found in blocks)).encode()
    headers = [(b"content-security-policy", policy), (b"x-content-type-options", b"nosniff")]
    return HttpResponse(200, text.encode("utf-8"), b"text/html; charset=utf-8", headers)


def _hash(block: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(block.encode('utf-8')).digest()).decode('ascii')}'"


def describe_model(name: str, models: ServedModels) -> dict[str, object]:
    """Describe the inputs and outputs of a model, with an example."""
    version = models.version(name)
    if version.bundle is None:
        return _describe_foreign_model(name, version)
    known = version.bundle
    inputs, _ = read_recordings(known)
    return {
        "name": name,
        "version": version.number,
        "engine": version.engine,
        "inputs": [
            {
                "name": one.name,
                "dtype": one.dtype,
                "shape": one.shape,
                "kind": one.kind,
                "unit": one.unit,
                "choices": _choices(one, known),
            }
            for one in known.signature.inputs
        ],
        "labels": known.labels,
        "drift": [one.line for one in models.drifts(name) if one.sure],
        "example": _row(known, inputs, 0),
        "examples": [_row(known, inputs, row) for row in range(_count_examples(inputs))],
    }


def _describe_foreign_model(name: str, version: Version) -> dict[str, object]:
    """Describe the inputs of a model that Stoker did not export, which has no examples."""
    blank = {"kind": "", "unit": "", "choices": None}
    inputs = [
        {"name": one.name, "dtype": one.dtype, "shape": (one.sizes or (None,))[1:], **blank}
        for one in version.inputs
    ]
    empty = {one.name: None for one in version.inputs}
    return {
        "name": name,
        "version": version.number,
        "engine": version.engine,
        "inputs": inputs,
        "labels": None,
        "drift": [],
        "example": empty,
        "examples": [empty],
    }


def _row(known: Bundle, inputs: Arrays, row: int) -> dict[str, object]:
    return {field.name: _example(field, inputs[field.name][row]) for field in known.signature.inputs}


def _count_examples(inputs: Arrays) -> int:
    """Return how many examples the page offers: one of images, whose pixels take a lot of room."""
    first = next(iter(inputs.values()))
    return min(_MOST_EXAMPLES, len(first)) if all(one.ndim == 1 for one in inputs.values()) else 1


def _choices(field: Field, known: Bundle) -> list[str] | None:
    """Return the categories to choose from, the most frequent first; None if there are none, or too many."""
    words = (known.description.get("statistics") or {}).get(field.name, {}).get("words")
    if field.kind != "category" or not isinstance(words, list) or len(words) > _MOST_CHOICES:
        return None
    return [str(word) for word in words]


def _example(field: Field, value: object) -> object:
    """Return a value as a person would write it; None if it is missing."""
    if field.kind == "category" and _plain(value) == field.missing:
        return None
    if field.kind != "date" or value != value or not isinstance(value, np.number):
        return _plain(value)
    return str(np.array(int(value)).astype(f"datetime64[{UNITS.get(field.unit, field.unit)}]"))


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, np.ndarray | np.generic):
        return value
    if value.size > _MOST_VALUES:
        return None
    plain = value.tolist()
    if isinstance(plain, float) and plain != plain:
        return None
    return [_plain(one) for one in plain] if value.dtype == object else plain
