"""What uvicorn does more slowly than a server under load can afford.

An answer goes in one packet: uvicorn writes the head of a response and then its body, each with a system call; what is
written within one turn of the event loop is kept, and sent together at its end. And a request that is refused because
the line is full is not parsed: to refuse must cost next to nothing, or refusing would leave no time for answering.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


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

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Together(transport, self.loop))

    def on_message_begin(self) -> None:
        self._inside = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._inside = False
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
