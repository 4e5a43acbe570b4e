"""What is new, as server-sent events: a line when the store has changed, a heartbeat when it has not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

EVERY_S = 0.5
# So that a connection that is gone is noticed, and a proxy does not give up.
_HEARTBEATS = 20


async def changes(look: Callable[[], Any], over: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    """Events until it is `over`: what `look` gives, each time it is something else."""
    last: str | None = None
    quiet = 0
    while not await over():
        now = json.dumps(await run_in_threadpool(look))
        if now != last:
            last, quiet = now, 0
            yield f"data: {now}\n\n".encode()
        else:
            quiet += 1
            if quiet % _HEARTBEATS == 0:
                yield b": nothing new\n\n"
        await asyncio.sleep(EVERY_S)
