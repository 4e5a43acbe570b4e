"""Where a person can try a model: a page of its own, and what it needs to know of a model."""

from __future__ import annotations

from importlib import resources
from typing import Any

from stoker.serve.http.messages import Response
from stoker.serve.http.models import Models
from stoker.serve.proof import recorded

_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
# An example with more values than this is not shown in a text field.
_MOST_VALUES = 4096


def page() -> Response:
    """The page itself."""
    text = resources.files(__package__).joinpath("page.html").read_bytes()
    headers = [(b"content-security-policy", _POLICY), (b"x-content-type-options", b"nosniff")]
    return Response(200, text, b"text/html; charset=utf-8", headers)


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
            {"name": one.name, "dtype": one.dtype, "shape": one.shape} for one in known.signature.inputs
        ],
        "labels": known.labels,
        "drift": [one.line for one in models.drifts(name) if one.sure],
        "example": {field.name: _shown(inputs[field.name][0]) for field in known.signature.inputs},
    }


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if getattr(value, "size", 1) > _MOST_VALUES:
        return None
    plain = value.tolist()
    return [_shown(one) for one in plain] if value.dtype == object else plain
