"""Requests that are not answered: a status and one line, which each protocol puts in its own form."""

from __future__ import annotations

from typing import Final

from stoker.errors import ArgumentError, describe_error
from stoker.serve.batching import BusyError, DeadlineError

# Every status with which a request may be refused, and its meaning.
MEANINGS: Final = {
    400: "The request is malformed, does not fit the model, or asks for more than a limit allows.",
    401: "The token is missing or wrong.",
    403: "The server does not allow this.",
    404: "There is no such path, model or version.",
    405: "The path takes different methods; Allow lists them.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body has an encoding other than gzip or deflate.",
    421: "The server is not known under this host name.",
    429: "The queue is full.",
    499: "The client closed the connection before its answer; nobody gets this one.",
    500: "The model failed.",
    503: "The server is not ready, is shutting down, or has too many requests.",
    504: "There was no answer in time.",
}
# The statuses that say when to try again.
RETRY: Final = (429, 503)


class RequestError(Exception):
    """The error that a client gets instead of an answer.

    Attributes:
        status: the HTTP status.
        line: what was wrong, and what to do about it.
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(self, status: int, line: str, retry_after: int | None = None) -> None:
        super().__init__(line)
        self.status, self.line, self.retry_after = status, line, retry_after


class ClientLeftError(RequestError):
    """The client did not wait for its answer."""

    def __init__(self) -> None:
        super().__init__(499, "the client closed the connection")


def explain(error: BaseException) -> RequestError:
    """Return what to tell a client about any error. A status of 500 says that the server is to blame."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, ArgumentError):
        return RequestError(400, str(error))
    if isinstance(error, BusyError):
        return RequestError(429, str(error), retry_after=1)
    if isinstance(error, DeadlineError):
        return RequestError(504, str(error))
    return RequestError(500, f"the model failed: {describe_error(error)}")
