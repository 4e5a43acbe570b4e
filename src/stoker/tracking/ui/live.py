"""Send changes of the store as server-sent events, with a heartbeat while nothing changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.concurrency import run_in_threadpool

EVERY_S = 0.5
# A heartbeat reveals a connection that is gone, and keeps proxies from closing one.
_HEARTBEATS = 20


async def stream_changes(
    look: Callable[[], dict[str, object]], is_over: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Stream what `look` returns whenever it has changed, until it is over."""
    last: str | None = None
    quiet = 0
    while not await is_over():
        now = json.dumps(await run_in_threadpool(look))
        if now != last:
            last, quiet = now, 0
            yield f"data: {now}\n\n".encode()
        else:
            quiet += 1
            if quiet % _HEARTBEATS == 0:
                yield b": nothing new\n\n"
        await asyncio.sleep(EVERY_S)
