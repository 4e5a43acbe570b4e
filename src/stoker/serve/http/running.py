"""One process that serves: it loads the models, answers until it is told to end, and finishes what it has."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from stoker.errors import StokerError
from stoker.logs import LOGGER, use_handler
from stoker.serve.http import ledger
from stoker.serve.http.app import App
from stoker.serve.http.log import Log
from stoker.serve.http.metrics import Metrics
from stoker.serve.http.models import Models
from stoker.serve.http.settings import Settings
from stoker.serve.http.sockets import refuse_connections
from stoker.serve.http.supervising import Tls
from stoker.serve.http.transport import Protocol

_DRAIN_S = 30
# Between the last connection that may begin and the end of listening: all that have begun are accepted by then. Of
# several processes it is the parent who lets none begin, at about the same time.
_SETTLE_S, _SETTLE_BESIDE_OTHERS_S = 0.3, 1.0
# Descriptors beside those of connections: files, sockets, libraries.
_DESCRIPTORS = 256
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
        log_config=None,  # configuring logging would close our handler
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
    server = Server(config, app, sock if workers == 1 else None)
    _allow_descriptors(settings.connections + _DESCRIPTORS)
    # What is loaded by now is never garbage, and looking through it again and again would hold requests up.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    models.watch()
    for number in (signal.SIGTERM, signal.SIGINT):
        # For a signal that comes before uvicorn listens for it. Once uvicorn has drained, it raises its signal again.
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    app.ready = True
    say("ready")
    loop = _event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_until_told(server, sock, app, tls, shared=workers > 1))
    if settings.ledger and workers == 1:
        for name in models.names():
            for line in ledger.lines(name, *models.books(name)):
                say(line)
    models.close()
    return 0


class Server(uvicorn.Server):
    """uvicorn's server, which ends in steps: it is not ready, accepts for a while on, stops, and answers what it has.

    A load balancer that still sends requests learns from `/readyz` to stop. `sock` is the listening socket, if no other
    process shares it.
    """

    def __init__(self, config: uvicorn.Config, app: App, sock: socket.socket | None) -> None:
        super().__init__(config)
        self._app, self._sock = app, sock

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """After SIGTERM or SIGINT; another SIGINT ends it at once."""
        self._app.ready = False
        await self._wait(self._app.settings.drain_delay)
        if self._sock is None:
            await self._wait(_SETTLE_BESIDE_OTHERS_S)
        else:
            refuse_connections(self._sock)
            await self._wait(_SETTLE_S)
        await super().shutdown(sockets)

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        while not self.force_exit and (left := ends - loop.time()) > 0:
            await asyncio.sleep(min(left, 0.05))


def _allow_descriptors(wanted: int) -> None:
    """As many open files as connections need, as far as the system lets it."""
    if importlib.util.find_spec("resource") is None:
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _until_told(server: Server, sock: socket.socket, app: App, tls: Tls, shared: bool) -> None:
    """HTTP, and gRPC beside it where it was asked for; both drain."""
    beside = None
    if app.settings.grpc:
        from stoker.serve.grpc.service import started  # an extra

        beside = await started(app, app.settings.grpc, tls, shared)
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


def run_worker() -> int:
    """Serve as one of several processes; the parent has the socket."""
    number, lifeline, certificate, key, metrics_file, worker, workers = sys.argv[1:]
    threading.Thread(target=_end_with_parent, args=(int(lifeline),), daemon=True).start()
    settings = Settings.loads(os.environ["STOKER_SERVE_SETTINGS"])
    sock = socket.socket(fileno=int(number))
    with use_handler(Log(f"stoker: worker {worker}: ")):
        try:
            return serve(
                settings,
                sock,
                Tls(certificate, key),
                LOGGER.info,
                Path(metrics_file),
                int(worker),
                int(workers),
            )
        except StokerError as error:
            LOGGER.error(str(error))
            return error.exit_code


def _end_with_parent(lifeline: int) -> None:
    """The parent holds the other end of this pipe. However it dies, the end closes, and this process is told to end."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
