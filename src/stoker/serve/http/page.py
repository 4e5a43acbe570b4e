"""Where a person can try a model: a page of its own, and what it needs to know of a model."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from stoker.serve.http.messages import Response
from stoker.serve.http.models import Models
from stoker.serve.proof import recorded
from stoker.serve.rows import UNITS
from stoker.serve.signature import Field

_POLICY = (
    "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# An example with more values than this is not shown in a text field.
_MOST_VALUES = 4096


@cache
def page() -> Response:
    """The page itself, whose script and style are allowed by their hashes."""
    text = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    blocks = (re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))
    policy = _POLICY.format(*(" ".join(map(_hash, found)) for found in blocks)).encode()
    headers = [(b"content-security-policy", policy), (b"x-content-type-options", b"nosniff")]
    return Response(200, text.encode("utf-8"), b"text/html; charset=utf-8", headers)


def _hash(block: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(block.encode('utf-8')).digest()).decode('ascii')}'"


def described(name: str, models: Models) -> dict[str, Any]:
    """Inputs, outputs and an example of a model."""
    version = models.version(name)
    known = version.predictor.bundle
    inputs, _ = recorded(known)
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


def _example(field: Field, value: Any) -> Any:
    """As a person would write it."""
    if field.kind != "date" or value != value:
        return _shown(value)
    return str(np.array(int(value)).astype(f"datetime64[{UNITS.get(field.unit, field.unit)}]"))


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if getattr(value, "size", 1) > _MOST_VALUES:
        return None
    plain = value.tolist()
    return [_shown(one) for one in plain] if value.dtype == object else plain
