"""A request, a response, and JSON between them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import orjson

from stoker.serve.plane.answering import Inquiry, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.signature import Array

JSON = b"application/json"
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


@dataclass(slots=True)
class HttpRequest(Inquiry):
    """What a client sent; header names are lower case."""

    method: str = ""
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class HttpResponse:
    """What the client gets."""

    status: int
    body: bytes
    kind: bytes = JSON
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


Routed = HttpResponse | Question[HttpResponse]
"""The answer to a request, or what it asks of a model."""


def refuse(error: RequestError) -> HttpResponse:
    """An error as the protocols have it."""
    headers = [] if error.retry_after is None else [(b"retry-after", str(error.retry_after).encode())]
    return HttpResponse(error.status, orjson.dumps({"error": error.line}), JSON, headers)


def parse_object(body: bytes) -> dict[str, object]:
    """Parse a body, which must be a JSON object; a RequestError says what else it is."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"the body is not JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict):
        raise RequestError(400, "the body must be a JSON object")
    return found


def plain_values(array: Array) -> object:
    """Values as JSON takes them: numbers as they are, strings as text."""
    return np.ascontiguousarray(array) if array.dtype != object else _text(array.tolist())


def _text(value: object) -> object:
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def answer(data: object, status: int = 200) -> HttpResponse:
    """JSON of arrays and plain values."""
    return HttpResponse(status, orjson.dumps(data, option=OPTIONS))
