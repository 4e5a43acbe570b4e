"""A request that goes to the model and back without ASGI between.

For a small model, uvicorn's task, event and messages for every request cost more than the model. Plain requests, which
are nearly all, do without: the parser's last call parses the rows and puts them in line, and the line calls back. It
stands in the place of uvicorn's own cycle of request and response, so that keeping connections alive, pipelining and
draining stay uvicorn's.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from stoker.serve.http.messages import HttpError, Request, Response
from stoker.serve.http.question import Question, Unparsed


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

    def is_admitted(self) -> bool:
        """Its body may be read; if not, it is answered now."""
        try:
            self._protocol.app.admission.check(self.request)
        except HttpError as error:
            self._refuse(error)
            return False
        return True

    def take(self, part: bytes) -> None:
        """A part of the body has come."""
        self.parts.append(part)
        try:
            self._protocol.app.admission.hold(self.request, len(part))
        except HttpError as error:
            self._refuse(error)

    def _refuse(self, error: HttpError) -> None:
        """Answer before all of the body is there; the protocol throws the rest of it away."""
        self.parts.clear()
        self._send(error.response(), whole=False)

    def start(self) -> None:
        """All of the request is there."""
        app, request, parts = self._protocol.app, self.request, self.parts
        request.body = parts[0] if len(parts) == 1 else b"".join(parts)
        try:
            routed = app.route(request)
            if isinstance(routed, Response):
                response = routed
            elif app.is_large(len(request.body), routed.version):
                self._parse_aside(routed)
                return
            else:
                self._put(app.parse(request, routed))
                return
        except Exception as error:  # noqa: BLE001 - one request must not take the server with it
            response = app.failure(request, error)
        self._send(response)

    def _parse_aside(self, unparsed: Unparsed) -> None:
        app, request = self._protocol.app, self.request
        app.aside(lambda: app.parse(request, unparsed)).add_done_callback(self._parsed)

    def _parsed(self, found: asyncio.Future[Any]) -> None:
        """A large body is parsed, or cannot be."""
        try:
            self._put(found.result())
        except Exception as error:  # noqa: BLE001 - one request must not take the server with it
            self._send(self._protocol.app.failure(self.request, error))

    def _put(self, asked: Question) -> None:
        """Into the line; it calls back."""
        self.asked, rows, app = asked, asked.rows, self._protocol.app
        asked.version.line.put(rows.arrays, rows.count, app.settings.timeout, self, self.request.spent)

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

    def _send(self, response: Response, whole: bool = True) -> None:
        protocol, request = self._protocol, self.request
        protocol.app.admission.release(request)
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
        if not whole:
            protocol.skip_body(self.keep_alive)
        elif not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()
