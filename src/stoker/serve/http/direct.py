"""A transport without ASGI in between: the parser's last call starts the exchange, and the answer is written at once.

For a small model, uvicorn's task, event and messages for every request cost more than the model. Plain requests, which
nearly all are, do without them. An exchange takes the place of uvicorn's own cycle of request and response, so uvicorn
still keeps connections alive, pipelines and drains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from stoker.serve.http.app import Exchange
from stoker.serve.http.messages import HttpRequest, HttpResponse
from stoker.serve.plane.errors import RequestError

if TYPE_CHECKING:
    from stoker.serve.http.transport import Protocol


class Direct(Exchange):
    """An exchange on one connection."""

    __slots__ = ("_protocol", "is_whole", "keep_alive", "parts", "response_complete")

    def __init__(self, protocol: Protocol, request: HttpRequest, keep_alive: bool) -> None:
        super().__init__(protocol.app, request)
        self._protocol, self.keep_alive = protocol, keep_alive
        self.parts: list[bytes] = []
        self.is_whole = False  # whether all of the body has arrived
        self.response_complete = False  # read by uvicorn's protocol

    @property
    def disconnected(self) -> bool:
        """Whether the client has left; uvicorn sets this."""
        return self.request.has_left

    @disconnected.setter
    def disconnected(self, left: bool) -> None:
        self.request.has_left = left

    @property
    def message_event(self) -> Direct:
        """The event that uvicorn also sets when the client leaves; `disconnected` says so already."""
        return self

    def set(self) -> None:
        """Do nothing, as nothing waits for the event."""

    def is_admitted(self) -> bool:
        """Return whether the body may be read; if not, the request is answered now."""
        try:
            self.app.admission.check(self.request)
        except RequestError as error:
            self.finish(error)
            return False
        return True

    def take(self, part: bytes) -> None:
        """Add a part of the body."""
        self.parts.append(part)
        try:
            self.app.plane.hold(self.request, len(part))
        except RequestError as error:
            self.parts.clear()
            self.finish(error)

    def complete(self) -> None:
        """Answer the request, now that all of it has arrived."""
        parts = self.parts
        self.is_whole, self.request.body = True, parts[0] if len(parts) == 1 else b"".join(parts)
        self.start()

    def send(self, response: HttpResponse) -> None:
        """Write the response. If it comes before the end of the body, the protocol discards the rest."""
        protocol, request = self._protocol, self.request
        self.response_complete = True
        if request.has_left or protocol.transport.is_closing():
            return
        head = [
            STATUS_LINE[response.status], b"content-type: ", response.kind,
            b"\r\ncontent-length: %d\r\nx-request-id: " % len(response.body), request.id.encode("latin-1"), b"\r\n",
        ]  # fmt: skip
        for name, value in (*protocol.server_state.default_headers, *response.headers):
            head += (name, b": ", value, b"\r\n")
        if not self.keep_alive:
            head.append(b"connection: close\r\n")
        protocol.transport.write(b"".join((*head, b"\r\n", response.body)))
        if not self.is_whole:
            protocol.skip_body(self.keep_alive)
        elif not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()
