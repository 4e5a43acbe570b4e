"""What uvicorn does more slowly than a server under load can afford.

An answer goes in one packet: uvicorn writes the head of a response and then its body, each with a system call; what is
written within one turn of the event loop is kept, and sent together at its end. And a request that is refused because
the line is full is not parsed: to refuse must cost next to nothing, or refusing would leave no time for answering.
Plain requests go directly to the application; whatever needs more than one answer to one body (bodies in chunks, too
large or announced, upgrades, requests that come before the last one is answered) goes uvicorn's way.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stoker.serve.http.direct import Direct

# Of a request line and headers; uvicorn would take any number.
_MOST_HEAD = 64 << 10
_LONG_HEAD = f"The headers are longer than {_MOST_HEAD} bytes."
_UPGRADE = (b"upgrade", b"connection", b"http2-settings")
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_FAULT = b"HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_CROWDED = b'{"error":"too many connections: try again later, or raise --max-connections"}'
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(_CROWDED), _CROWDED)
)
# So long the rest of a body that nobody wants is read, and a client that is refused may read why: a connection that is
# closed while bytes arrive is reset, and its answer with it.
_LINGER_S = 5.0
# So long an idle client of a server that ends may still ask one thing.
_LAST_CHANCE_S = 1.0
# So many connections beyond the most are told why they are refused.
_MOST_TOLD = 64
_METHODS = {b"GET": "GET", b"POST": "POST"}


@lru_cache(256)
def _path_of(url: bytes) -> str:
    """The path in what a request asks for. Few are asked for, again and again."""
    path: str = httptools.parse_url(url).path.decode("ascii")
    return unquote(path) if "%" in path else path


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


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol over such a transport."""

    app: Any
    cycle: Any
    parser: Any
    transport: Any  # a `Together`
    _inside = False  # a message
    _head: int | None = None  # how much of one has come, while it is not all there
    _arrived = 0  # bytes at once
    _direct: Direct | None = None  # what the parser is in
    _resting = 0.0  # since when it has been idle
    _deaf = 0.0  # since when it has not read its answers
    _deadline = 0.0  # when all of the message must have come
    _unwanted = False  # nothing more is read from this client
    _closes = False  # once the rest of the body has come
    _ending = False  # the server ends

    def connection_made(self, transport: Any) -> None:
        super().connection_made(cast(Any, Together(transport, self.loop)))
        beyond = len(self.connections) - self.app.settings.connections
        if beyond > 0:
            self._turn_away(told=beyond <= _MOST_TOLD)
        else:
            self._rest()

    def _turn_away(self, told: bool) -> None:
        """There are too many connections already."""
        self._unwanted = True
        if told:
            self.transport.send(_TOO_MANY)
            self.loop.call_later(_LINGER_S, self.transport.close)
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        self._inside, self._head, self._deadline = True, 0, 0.0
        self.url, self.expect_100_continue = b"", False
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is not None:  # else it comes after the body, and nobody reads it
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if (self._head or 0) + self._arrived > _MOST_HEAD and self._is_head_too_long():
            return
        self._head = None
        if self.transport.is_closing() or self.parser.should_upgrade():
            return  # nothing is asked after the last answer; for upgrades see `_stay`
        headers, method = dict(self.headers), _METHODS.get(self.parser.get_method())
        if method is None or not self._is_plain(headers):
            self._go_the_usual_way()
            if self._ending:
                self.cycle.keep_alive = False
            return
        parser = self.parser
        request = self.app.request(method, _path_of(self.url), headers)
        keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive() and not self._ending
        self.cycle = direct = Direct(self, request, keep_alive)
        if direct.is_admitted():
            self._direct = direct

    def _is_head_too_long(self) -> bool:
        """A head that has come at once, or with much else; if it is too long, that is said."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > _MOST_HEAD:
            self.send_400_response(_LONG_HEAD)
        return size > _MOST_HEAD

    def _go_the_usual_way(self) -> None:
        """What uvicorn wants to know is put together only now."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.on_url(url)
        for name, value in headers:
            super().on_header(name, value)
        super().on_headers_complete()

    def _is_plain(self, headers: dict[bytes, bytes]) -> bool:
        """A request that is answered when it is all there, with nothing before it."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or self.flow.write_paused:
            return False
        return b"transfer-encoding" not in headers and b"expect" not in headers

    def skip_body(self, keep_alive: bool) -> None:
        """The request is answered already: what is left of its body is thrown away, for a while."""
        self._direct, self._closes = None, not keep_alive
        self._deadline = self.loop.time() + _LINGER_S
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        self._look_in(_LINGER_S)

    def on_body(self, body: bytes) -> None:
        if self._direct is not None:
            self._direct.take(body)
        elif not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._inside = False
        direct, self._direct = self._direct, None
        if direct is not None:
            direct.start()
        elif self._closes:
            self.transport.close()
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
            self._look_in(min(self.timeout_keep_alive, self.app.settings.body_timeout))

    def _look_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        earlier = (
            self._head is not None and busy
        )  # a request is still answered, and the next one comes already
        now = self.loop.time()
        if self._inside and (earlier or self.flow.read_paused):
            self._deadline = now + self.app.settings.body_timeout  # it is the server who takes its time
        if self.flow.write_paused:
            ends = self._deaf + self.timeout_keep_alive
        elif self._inside:
            ends = self._deadline
        else:
            ends = (now if busy else self._resting) + self.timeout_keep_alive
        if ends > now:
            self._look_in(ends - now)
            return
        if not self.transport.is_closing() and (self._direct is not None or self._head is not None):
            self.transport.write(_TOO_SLOW)
        super().timeout_keep_alive_handler()
        # A client that does not read its answer keeps a connection open that is only closed.
        self.loop.call_later(_LINGER_S, self.transport.abort)

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self._deaf = self.loop.time()
        super().pause_writing()

    def shutdown(self) -> None:
        """The server ends. What was asked is answered, also by a client who is just about to ask."""
        self._ending = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif not self._inside:
            self.loop.call_later(_LAST_CHANCE_S, self._end)

    def _end(self) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        if not busy and not self._inside:
            self.transport.close()

    def _unset_keepalive_if_required(self) -> None:
        """Data came; the timer will see."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        if self._direct is not None:  # its body will not come
            self.app.admission.release(self._direct.request)

    def data_received(self, data: bytes) -> None:
        if self._unwanted:
            return
        fresh = not self._inside and not self._ending
        if fresh and (self.cycle is None or self.cycle.response_complete):
            refusal = self.app.refusal(data) if self.app.crowded() else None
            if refusal is not None:
                self.transport.write(refusal)
                self._rest()
                return
        self._arrived = len(data)
        self._feed(data)
        if self._inside and not self._deadline:
            self._deadline = self.loop.time() + self.app.settings.body_timeout
        if self._head is not None:  # the head is not all there
            self._head += len(data)
            if self._head > _MOST_HEAD and not self.transport.is_closing():
                self.send_400_response(_LONG_HEAD)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            self._fail(error)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            self._stay(data[upgrade.args[0] :])

    def _fail(self, error: Exception) -> None:
        """Something the parser has called went wrong: a path that is none, or a fault of this server."""
        cause = error.__context__ or error
        if isinstance(cause, httptools.HttpParserError):
            self.send_400_response("Invalid HTTP request received.")
            return
        self.app.failed(cause, "", "")
        self.transport.write(_FAULT)
        self.transport.close()

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
