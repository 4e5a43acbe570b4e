"""A gRPC server in this process, for clients in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stoker.serve.grpc.server import start_server
from stoker.serve.http.app import App
from tests.support import HANGS_S


@contextmanager
def serve_grpc(app: App) -> Iterator[str]:
    """The address of a server of the application."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        starting = asyncio.run_coroutine_threadsafe(start_server(app.plane, "127.0.0.1:0"), loop)
        server, port = starting.result(HANGS_S)
        yield f"127.0.0.1:{port}"
        asyncio.run_coroutine_threadsafe(server.stop(None), loop).result(HANGS_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(HANGS_S)
