"""uvicorn's HTTP protocol, with changes for a server under load.

- A request that a full queue refuses is not parsed: refusing must cost next to nothing, or it would leave no time for
  answering.
- Plain requests go straight to the application (`direct`). Everything else goes through ASGI: bodies in chunks or
  announced by `Expect`, upgrades, requests that come before the last one is answered.
- Clients that send or read too slowly are disconnected.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stoker.serve.http.app import App
from stoker.serve.http.direct import Direct
from stoker.serve.http.messages import spell_refusal
from stoker.serve.plane.answering import Inquiry

# The limit of a request line and headers in bytes; uvicorn has none.
_MOST_HEAD = 64 << 10
_LONG_HEAD = f"The headers are longer than {_MOST_HEAD} bytes."
_UPGRADE = (b"upgrade", b"connection", b"http2-settings")
_TOO_SLOW = spell_refusal(b"408 Request Timeout", b"the request did not arrive in time")
_FAULT = spell_refusal(b"500 Internal Server Error", b"the server failed")
_TOO_MANY = spell_refusal(
    b"503 Service Unavailable",
    b"too many connections: try again later, or raise --max-connections",
    b"retry-after: 1\r\n",
)
# How long the rest of an unwanted body is read, so that a refused client can read why: a connection closed while
# bytes arrive is reset, and its answer is lost.
_LINGER_S = 5.0
# How long an idle client may still send a request to a server that is ending.
_LAST_CHANCE_S = 1.0
# How many connections beyond the limit get a refusal; any more are closed without a word.
_MOST_REFUSALS = 64
_METHODS = {b"GET": "GET", b"POST": "POST"}


@lru_cache(256)
def _path_of(url: bytes) -> str:
    """Return the path in a request's URL. Clients use few paths, again and again."""
    path: str = httptools.parse_url(url).path.decode("ascii")
    return unquote(path) if "%" in path else path


class Protocol(HttpToolsProtocol):
    """One connection."""

    app: App
    cycle: Any  # a `Direct`, or uvicorn's cycle of request and response
    parser: Any
    transport: asyncio.Transport
    _inside = False  # a request has begun but has not arrived completely
    _head: int | None = None  # bytes of an unfinished head
    _arrived = 0  # bytes of the last packet
    _direct: Direct | None = None  # the exchange whose body is being read
    _idle_since = 0.0  # time of the last request
    _paused_since = 0.0  # when the client stopped reading its answers
    _deadline = 0.0  # when the whole request must have arrived
    _refused = False  # nothing more is read from this client
    _closes = False  # close the connection once the rest of the body has arrived
    _ending = False  # the server is ending

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        beyond = len(self.connections) - self.app.settings.connections
        if beyond > 0:
            self._turn_away(say_why=beyond <= _MOST_REFUSALS)
        else:
            self._rest()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, with a JSON response like all others."""
        self.transport.write(spell_refusal(b"400 Bad Request", msg.encode("ascii")))
        self.transport.close()

    def _turn_away(self, say_why: bool) -> None:
        """Refuse a connection beyond the limit."""
        self._refused = True
        if say_why:
            self.transport.write(_TOO_MANY)
            self.loop.call_later(_LINGER_S, self.transport.close)
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        self._inside, self._head, self._deadline = True, 0, 0.0
        self.url, self.expect_100_continue = b"", False
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is not None:  # otherwise it is a trailer after the body, which nobody reads
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if (self._head or 0) + self._arrived > _MOST_HEAD and self._is_head_too_long():
            return
        self._head = None
        if self.transport.is_closing() or self.parser.should_upgrade():
            return  # a connection that closes takes no more requests; for upgrades see `_stay`
        headers, method = dict(self.headers), _METHODS.get(self.parser.get_method())
        if method is None or not self._is_plain(headers):
            self._use_asgi()
            if self._ending:
                self.cycle.keep_alive = False
            return
        parser = self.parser
        request = self.app.begin(method, _path_of(self.url), headers)
        keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive() and not self._ending
        self.cycle = direct = Direct(self, request, keep_alive)
        if direct.is_admitted():
            self._direct = direct

    def _is_head_too_long(self) -> bool:
        """Check whether a head that came in one packet is too long; if so, tell the client."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > _MOST_HEAD:
            self.send_400_response(_LONG_HEAD)
        return size > _MOST_HEAD

    def _use_asgi(self) -> None:
        """Hand a request over to uvicorn, with everything it would have collected by now."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.on_url(url)
        for name, value in headers:
            super().on_header(name, value)
        super().on_headers_complete()

    def _is_plain(self, headers: dict[bytes, bytes]) -> bool:
        """Return whether a request can be answered as soon as it is complete, with no other before it."""
        if self._is_answering() or self.flow.write_paused:
            return False
        return b"transfer-encoding" not in headers and b"expect" not in headers

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def skip_body(self, keep_alive: bool) -> None:
        """Discard the rest of the body of a request that is already answered, for a while."""
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
            direct.complete()
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
        """Mark the connection idle. One timer is enough: when it fires, it checks whether that is still so."""
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_in(min(self.timeout_keep_alive, self.app.settings.body_timeout))

    def _look_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        busy = self._is_answering()
        is_next = self._head is not None and busy  # the next request comes while one is still answered
        now = self.loop.time()
        if self._inside and (is_next or self.flow.read_paused):
            self._deadline = now + self.app.settings.body_timeout  # the server is to blame
        if self.flow.write_paused:
            ends = self._paused_since + self.timeout_keep_alive
        elif self._inside:
            ends = self._deadline
        else:
            ends = (now if busy else self._idle_since) + self.timeout_keep_alive
        if ends > now:
            self._look_in(ends - now)
            return
        if not self.transport.is_closing() and (self._direct is not None or self._head is not None):
            self.transport.write(_TOO_SLOW)
        super().timeout_keep_alive_handler()
        # After a mere close, the connection would stay open as long as the client does not read its answer.
        self.loop.call_later(_LINGER_S, self.transport.abort)

    def pause_writing(self) -> None:
        """Note that the client has stopped reading its answers."""
        self._paused_since = self.loop.time()
        super().pause_writing()

    def shutdown(self) -> None:
        """Prepare for the server's end: answer the requests it has, and those that are just being sent."""
        self._ending = True
        if self._is_answering():
            self.cycle.keep_alive = False
        elif not self._inside:
            self.loop.call_later(_LAST_CHANCE_S, self._end)

    def _end(self) -> None:
        if not self._is_answering() and not self._inside:
            self.transport.close()

    def _unset_keepalive_if_required(self) -> None:
        """Leave the timer alone when data comes: when it fires, it checks the state."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        if self._direct is not None:  # the rest of its body will not come
            self.app.plane.release(self._direct.request)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if not self._inside and not self._ending and not self._is_answering():
            refusal = self.app.refuse_unparsed(data)
            if refusal is not None:
                self.transport.write(refusal)
                self._rest()
                return
        self._arrived = len(data)
        self._feed(data)
        if self._inside and not self._deadline:
            self._deadline = self.loop.time() + self.app.settings.body_timeout
        if self._head is not None:  # the head has not arrived completely
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
        """Handle a failed callback of the parser: the path is invalid, or this server has a fault."""
        cause = error.__context__ or error
        if isinstance(cause, httptools.HttpParserError):
            self.send_400_response("Invalid HTTP request received.")
            return
        self.app.plane.explain(cause, Inquiry(""))
        self.transport.write(_FAULT)
        self.transport.close()

    def _stay(self, rest: bytes) -> None:
        """Answer a client that asks for another protocol (Java asks for HTTP/2) in HTTP/1.1.

        The parser gives up on such a request and its body, so a new parser gets the request without the upgrade
        headers.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("This server is not a proxy.")
            return
        kept = [(name, value) for name, value in self.headers if name not in _UPGRADE]
        if any(b"close" in value.lower() for name, value in self.headers if name == b"connection"):
            kept.append((b"connection", b"close"))
        lines = [b"%b %b HTTP/1.1" % (method, self.url), *(b"%b: %b" % one for one in kept), b"", b""]
        self.parser = httptools.HttpRequestParser(self)
        # Set up as uvicorn sets up its own parser; what follows a close is ignored.
        if hasattr(self.parser, "set_dangerous_leniencies"):
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"\r\n".join(lines) + rest)
