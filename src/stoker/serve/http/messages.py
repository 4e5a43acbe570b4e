"""A request, a response, and an error: a status and one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from stoker.serve.http.ledger import Spent

JSON = b"application/json"
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


@dataclass(slots=True)
class Request:
    """What a client sent; header names are lower case. It `started` when its last byte was there.

    `held` is what its body takes of the server's memory, as `Settings.held_bytes` counts it.
    """

    method: str
    path: str
    headers: dict[bytes, bytes]
    body: bytes
    id: str = ""
    model: str = ""
    rows: int = 0
    spent: Spent | None = None
    started: float = 0.0
    held: int = 0

    def json(self) -> Any:
        """The body.

        Raises:
            HttpError: it is no JSON.
        """
        return parsed(self.body)


@dataclass(slots=True)
class Response:
    """What the client gets."""

    status: int
    body: bytes
    kind: bytes = JSON
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


class HttpError(Exception):
    """Something the client should know: a status and one line."""

    def __init__(self, status: int, line: str, retry_after: int | None = None) -> None:
        super().__init__(line)
        self.status, self.line, self.retry_after = status, line, retry_after

    def response(self) -> Response:
        """As the protocols have it."""
        headers = [] if self.retry_after is None else [(b"retry-after", str(self.retry_after).encode())]
        return Response(self.status, orjson.dumps({"error": self.line}), JSON, headers)


def parsed(body: bytes) -> Any:
    """JSON as Python's values.

    Raises:
        HttpError: it is none.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HttpError(400, f"the body is not JSON: {str(error).splitlines()[0]}") from None


def answer(data: Any, status: int = 200) -> Response:
    """JSON of arrays and plain values."""
    return Response(status, orjson.dumps(data, option=OPTIONS))
