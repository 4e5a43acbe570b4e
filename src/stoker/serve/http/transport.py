"""What uvicorn does more slowly than a server under load can afford.

An answer goes in one packet: uvicorn writes the head of a response and then its body, each with a system call; what is
written within one turn of the event loop is kept, and sent together at its end. And a request that is refused because
the line is full is not parsed: to refuse must cost next to nothing, or refusing would leave no time for answering.
Plain requests go directly to the application; whatever needs more than one answer to one body (bodies in chunks, too
large or announced, upgrades, requests that come before the last one is answered) goes uvicorn's way.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stoker.serve.http.direct import Direct

# Of a request line and headers; uvicorn would take any number.
_MOST_HEAD = 64 << 10
_METHODS = {b"GET": "GET", b"POST": "POST"}


class Together:
    """A transport that sends once a turn of the loop."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send it at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def send(self, data: bytes) -> None:
        """Send it now: it is all of an answer."""
        self._flush()
        self._transport.write(data)

    def close(self) -> None:
        """Send what is left, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            if not self._transport.is_closing():
                self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):  # type: ignore[misc]
    """uvicorn's protocol over such a transport."""

    app: Any
    _inside = False  # a message
    _head: int | None = None  # how much of one has come, while it is not all there
    _direct: Direct | None = None  # what the parser is in

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Together(transport, self.loop))

    def on_message_begin(self) -> None:
        self._inside, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        if self.transport.is_closing():
            return  # nothing is asked after the last answer
        if not self._is_plain():
            super().on_headers_complete()
            return
        parser = self.parser
        path = httptools.parse_url(self.url).path.decode("ascii")
        request = self.app.request(
            _METHODS[parser.get_method()], unquote(path) if "%" in path else path, dict(self.headers)
        )
        keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive()
        self.cycle = self._direct = Direct(self, request, keep_alive)

    def _is_plain(self) -> bool:
        """A request that is answered when it is all there, with nothing before it."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or self.flow.write_paused or self.parser.should_upgrade():
            return False
        length = b"0"
        for name, value in self.headers:
            if name == b"content-length":
                length = value
            elif name in (b"transfer-encoding", b"expect"):
                return False
        small = length.isdigit() and int(length) <= self.app.settings.body_bytes
        return small and self.parser.get_method() in _METHODS

    def on_body(self, body: bytes) -> None:
        if self._direct is not None:
            self._direct.parts.append(body)
        elif not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._inside = False
        direct, self._direct = self._direct, None
        if direct is not None:
            direct.start()
        elif not self.transport.is_closing():
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        if not self._inside and (self.cycle is None or self.cycle.response_complete):
            refusal = self.app.refusal(data) if self.app.crowded() else None
            if refusal is not None:
                self._unset_keepalive_if_required()
                self.transport.write(refusal)
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
                return
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > _MOST_HEAD and not self.transport.is_closing():
                self.send_400_response(f"The headers are longer than {_MOST_HEAD} bytes.")
