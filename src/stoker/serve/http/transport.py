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
_UPGRADE = (b"upgrade", b"connection", b"http2-settings")
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
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
    parser: Any
    _inside = False  # a message
    _head: int | None = None  # how much of one has come, while it is not all there
    _direct: Direct | None = None  # what the parser is in
    _resting = 0.0  # since when it has been idle
    _heard = 0.0  # when the message began to come; of a body, when the last of it came

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Together(transport, self.loop))
        self._rest()

    def on_message_begin(self) -> None:
        self._inside, self._head = True, 0
        self.url, self.expect_100_continue = b"", False
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._head = None
        if self.transport.is_closing() or self.parser.should_upgrade():
            return  # nothing is asked after the last answer; for upgrades see `_stay`
        if not self._is_plain():
            self._go_the_usual_way()
            return
        parser = self.parser
        path = httptools.parse_url(self.url).path.decode("ascii")
        request = self.app.request(
            _METHODS[parser.get_method()], unquote(path) if "%" in path else path, dict(self.headers)
        )
        keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive()
        self.cycle = self._direct = Direct(self, request, keep_alive)

    def _go_the_usual_way(self) -> None:
        """What uvicorn wants to know is put together only now."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.on_url(url)
        for name, value in headers:
            super().on_header(name, value)
        super().on_headers_complete()

    def _is_plain(self) -> bool:
        """A request that is answered when it is all there, with nothing before it."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or self.flow.write_paused:
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
        elif not self.transport.is_closing() and not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self._rest()

    def _rest(self) -> None:
        """Nothing is asked: it may be idle for a while. One timer, which looks when that is over, is enough."""
        self._resting = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_in(self.timeout_keep_alive)

    def _look_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        # A head may take as long as a connection may be idle; so may each part of a body.
        since = self._heard if self._inside else self._resting
        waits = self._inside or not busy
        left = self.timeout_keep_alive - (self.loop.time() - since if waits else 0.0)
        if left > 0:
            self._look_in(left)
            return
        if self._inside and not self.transport.is_closing() and (self._direct is not None or not busy):
            self.transport.write(_TOO_SLOW)
        super().timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        """Data came; the timer will see."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()

    def data_received(self, data: bytes) -> None:
        fresh = not self._inside
        if fresh and (self.cycle is None or self.cycle.response_complete):
            refusal = self.app.refusal(data) if self.app.crowded() else None
            if refusal is not None:
                self.transport.write(refusal)
                self._rest()
                return
        self._feed(data)
        if self._inside and (fresh or self._head is None):
            self._heard = self.loop.time()
        if self._head is not None:  # the head is not all there
            self._head += len(data)
            if self._head > _MOST_HEAD and not self.transport.is_closing():
                self.send_400_response(f"The headers are longer than {_MOST_HEAD} bytes.")

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            self._stay(data[upgrade.args[0] :])

    def _stay(self, rest: bytes) -> None:
        """A client would like to go on in another protocol (Java's HTTP/2): it is answered in this one.

        The parser gives up at such a request, body and all, so another one gets it without that wish.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("This is no proxy.")
            return
        kept = [(name, value) for name, value in self.headers if name not in _UPGRADE]
        if any(b"close" in value.lower() for name, value in self.headers if name == b"connection"):
            kept.append((b"connection", b"close"))
        lines = [b"%b %b HTTP/1.1" % (method, self.url), *(b"%b: %b" % one for one in kept), b"", b""]
        self.parser = httptools.HttpRequestParser(self)
        if hasattr(
            self.parser, "set_dangerous_leniencies"
        ):  # as uvicorn's own; what follows a close is ignored
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"\r\n".join(lines) + rest)
