"""A request, a response, and conversion from and to JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson

from stoker.errors import first_line
from stoker.serve.plane.answering import Inquiry, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.signature import Array

JSON = b"application/json"
# Bodies of fewer bytes are searched for whole words, and so are those in which a letter of the word is more frequent.
_SMALL, _MOST_LETTERS = 1 << 10, 16
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


@dataclass(slots=True)
class HttpRequest(Inquiry):
    """What a client sent. Header names are in lower case."""

    method: str = ""
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class HttpResponse:
    """The response that the client gets."""

    status: int
    body: bytes
    kind: bytes = JSON
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


Routed = HttpResponse | Question[HttpResponse]
"""The answer to a request, or its question to a model."""


class MethodError(RequestError):
    """The path takes other methods."""

    def __init__(self, path: str, methods: Sequence[str]) -> None:
        super().__init__(405, f"{path} takes {' or '.join(methods)}")
        self.methods = methods


def refuse(error: RequestError) -> HttpResponse:
    """Return an error in the form of the protocols, with the headers that HTTP requires."""
    headers = [] if error.retry_after is None else [(b"retry-after", str(error.retry_after).encode())]
    if isinstance(error, MethodError):
        headers.append((b"allow", ", ".join(error.methods).encode()))
    elif error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    elif error.status == 415:
        headers.append((b"accept-encoding", b"gzip, deflate"))
    return HttpResponse(error.status, orjson.dumps({"error": error.line}), JSON, headers)


def spell_refusal(status: bytes, line: bytes, headers: bytes = b"") -> bytes:
    """Write out a response where the application has no request to answer yet; the connection closes after it."""
    body = b'{"error":"%b"}' % line
    return (
        b"HTTP/1.1 %b\r\nconnection: close\r\n%bcontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        % (status, headers, len(body), body)
    )


def parse_object(body: bytes) -> dict[str, object]:
    """Parse a body, which must be a JSON object. A RequestError says what it is instead."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"the body is not JSON: {first_line(error)}") from None
    if not isinstance(found, dict):
        raise RequestError(400, "the body must be a JSON object")
    return found


def may_hold_booleans(body: bytes) -> bool:
    """Return whether a body of JSON may hold true or false. Its bytes are searched much faster than its values."""
    if len(body) < _SMALL:
        return b"true" in body or b"false" in body
    return _holds_word(body, b"true", b"r") or _holds_word(body, b"false", b"f")


def _holds_word(body: bytes, word: bytes, letter: bytes) -> bool:
    """Search for a word by one of its letters, which numbers lack: much faster if the body has few of them."""
    offset, place = word.index(letter), body.find(letter)
    for _ in range(_MOST_LETTERS):
        if place < 0:
            return False
        if body.startswith(word, max(0, place - offset)):
            return True
        place = body.find(letter, place + 1)
    return place >= 0 and body.find(word, place - offset) >= 0


def plain_values(array: Array) -> object:
    """Return values as JSON takes them: numbers unchanged, strings as text."""
    if array.dtype == object or not array.ndim:
        return _text(array.tolist())
    return np.ascontiguousarray(array)


def _text(value: object) -> object:
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def answer(data: object, status: int = 200) -> HttpResponse:
    """Respond with JSON of arrays and plain values."""
    return HttpResponse(status, orjson.dumps(data, option=OPTIONS))
