"""Where a person can try a model: a page of its own, and what it needs to know of a model."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

import numpy as np

from stoker.serve.http.messages import HttpResponse
from stoker.serve.plane.models import ServedModels
from stoker.serve.proof import read_recordings
from stoker.serve.rows import UNITS
from stoker.serve.signature import Field

_POLICY = (
    "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# An example with more values than this is not shown in a text field.
_MOST_VALUES = 4096


@cache
def page() -> HttpResponse:
    """The page itself, whose script and style are allowed by their hashes."""
    text = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    blocks = (re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))
    policy = _POLICY.format(*(" ".join(map(_hash, found)) for found in blocks)).encode()
    headers = [(b"content-security-policy", policy), (b"x-content-type-options", b"nosniff")]
    return HttpResponse(200, text.encode("utf-8"), b"text/html; charset=utf-8", headers)


def _hash(block: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(block.encode('utf-8')).digest()).decode('ascii')}'"


def describe_model(name: str, models: ServedModels) -> dict[str, object]:
    """Inputs, outputs and an example of a model."""
    version = models.version(name)
    known = version.predictor.bundle
    inputs, _ = read_recordings(known)
    return {
        "name": name,
        "version": version.number,
        "engine": version.predictor.engine.name,
        "inputs": [
            {"name": one.name, "dtype": one.dtype, "shape": one.shape, "kind": one.kind}
            for one in known.signature.inputs
        ],
        "labels": known.labels,
        "drift": [one.line for one in models.drifts(name) if one.sure],
        "example": {field.name: _example(field, inputs[field.name][0]) for field in known.signature.inputs},
    }


def _example(field: Field, value: object) -> object:
    """A value as a person would write it."""
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
    return [_plain(one) for one in plain] if value.dtype == object else plain
