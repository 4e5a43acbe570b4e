"""One process that serves: it loads the models, answers until it is told to end, and finishes what it has."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn

from stoker.errors import StokerError
from stoker.serve.http import ledger
from stoker.serve.http.app import App
from stoker.serve.http.metrics import Metrics
from stoker.serve.http.models import Models
from stoker.serve.http.settings import Settings
from stoker.serve.http.supervising import Tls
from stoker.serve.http.transport import Protocol

_DRAIN_S = 30
# A request leaves no cycles behind, so that looking for them after every few requests finds nothing.
_GARBAGE = (20_000, 10, 10)


def serve(
    settings: Settings,
    sock: socket.socket,
    tls: Tls,
    say: Callable[[str], None],
    metrics_file: Path | None = None,
    worker: int = 0,
    workers: int = 1,
) -> int:
    """Serve in this process until it is told to end.

    Raises:
        BundleError: a model cannot be loaded.
    """
    metrics = Metrics(list(settings.models), metrics_file, worker, workers)
    models = Models(settings, metrics, say, worker, workers)
    models.load()
    app = App(settings, models, metrics, say, worker)
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # nobody asks where a request comes from
        timeout_graceful_shutdown=_DRAIN_S,
        ssl_certfile=tls.certificate or None,
        ssl_keyfile=tls.key or None,
        timeout_keep_alive=75,
    )
    server = uvicorn.Server(config)
    # What is loaded by now is never garbage, and looking through it again and again would hold requests up.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    models.watch()
    app.ready = True
    say("ready")
    for number in (signal.SIGTERM, signal.SIGINT):
        # Once it has drained, uvicorn raises the signal again for whoever was there before it.
        signal.signal(number, lambda *_: None)
    loop = _event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_until_told(server, sock, app, tls))
    if settings.ledger and workers == 1:
        for name in models.names():
            for line in ledger.lines(name, *models.books(name)):
                say(line)
    models.close()
    return 0


async def _until_told(server: uvicorn.Server, sock: socket.socket, app: App, tls: Tls) -> None:
    """HTTP, and gRPC beside it where it was asked for; both drain."""
    beside = None
    if app.settings.grpc:
        from stoker.serve.grpc.service import started  # an extra

        beside = await started(app, app.settings.grpc, tls)
    await server.serve([sock])
    if beside is not None:
        await beside.stop(_DRAIN_S)


def _event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one, which is not everywhere."""
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _worker() -> int:
    """One of several processes; its parent has the socket."""
    number, certificate, key, metrics_file, worker, workers = sys.argv[1:]
    settings = Settings.loads(os.environ["STOKER_SERVE_SETTINGS"])
    sock = socket.socket(fileno=int(number))

    def say(line: str) -> None:
        sys.stderr.write(f"stoker: worker {worker}: {line}\n")

    try:
        return serve(
            settings, sock, Tls(certificate, key), say, Path(metrics_file), int(worker), int(workers)
        )
    except StokerError as error:
        say(str(error))
        return error.exit_code


if __name__ == "__main__":
    sys.exit(_worker())
