"""A request that goes to the model and back without ASGI between.

For a small model, uvicorn's task, event and messages for every request cost more than the model. Plain requests, which
are nearly all, do without: the parser's last call parses the rows and puts them in line, and the line calls back. It
stands in the place of uvicorn's own cycle of request and response, so that keeping connections alive, pipelining and
draining stay uvicorn's.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from stoker.serve.http.messages import Request, Response
from stoker.serve.http.question import Question


class Direct:
    """One request and its response."""

    __slots__ = ("_protocol", "asked", "disconnected", "keep_alive", "parts", "request", "response_complete")

    def __init__(self, protocol: Any, request: Request, keep_alive: bool) -> None:
        self._protocol, self.request, self.keep_alive = protocol, request, keep_alive
        self.parts: list[bytes] = []
        self.asked: Question | None = None
        # uvicorn's protocol reads and sets these.
        self.response_complete = self.disconnected = False

    @property
    def message_event(self) -> Direct:
        """What uvicorn sets when the client leaves; `disconnected` says it already."""
        return self

    def set(self) -> None:
        """Nobody waits for it."""

    def start(self) -> None:
        """All of the request is there."""
        app, request, parts = self._protocol.app, self.request, self.parts
        request.body = parts[0] if len(parts) == 1 else b"".join(parts)
        try:
            asked = app.opened(request)
            if isinstance(asked, Response):
                response = asked
            else:
                self.asked = asked
                rows = asked.rows
                asked.version.line.put(rows.arrays, rows.count, app.settings.timeout, self, request.spent)
                return
        except Exception as error:  # noqa: BLE001 - one request must not take the server with it
            response = app.failure(request, error)
        self._send(response)

    def left(self) -> bool:
        """The client has left."""
        return self.disconnected

    def settled(self, answers: list[Any] | None, error: BaseException | None) -> None:
        """The model has answered, or will not."""
        app, request = self._protocol.app, self.request
        if self.disconnected:
            response = Response(499, b"")
        elif answers is None:
            assert error is not None
            response = app.failure(request, error)
        else:
            assert self.asked is not None
            try:
                response = app.closed(request, self.asked, answers)
            except Exception as trouble:  # noqa: BLE001 - nor the others that were answered with it
                response = app.failure(request, trouble)
        self._send(response)

    def _send(self, response: Response) -> None:
        protocol, request = self._protocol, self.request
        protocol.app.count(request, response)
        self.response_complete = True
        if self.disconnected or protocol.transport.is_closing():
            return
        head = [
            STATUS_LINE[response.status], b"content-type: ", response.kind,
            b"\r\ncontent-length: %d\r\nx-request-id: " % len(response.body), request.id.encode("latin-1"), b"\r\n",
        ]  # fmt: skip
        for name, value in (*protocol.server_state.default_headers, *response.headers):
            head += (name, b": ", value, b"\r\n")
        if not self.keep_alive:
            head.append(b"connection: close\r\n")
        protocol.transport.send(b"".join((*head, b"\r\n", response.body)))
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()
