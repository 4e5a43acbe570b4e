"""One serving process: it loads the models, answers until it is told to end, and finishes its requests."""

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

import uvicorn

from stoker.errors import StokerError
from stoker.logs import LOGGER, use_handler
from stoker.serve.http.app import App
from stoker.serve.http.transport import Protocol
from stoker.serve.plane import ledger
from stoker.serve.plane.answering import DataPlane
from stoker.serve.plane.metrics import Metrics
from stoker.serve.plane.models import ServedModels
from stoker.serve.plane.settings import ALONE, ServerSettings, ServerWorker
from stoker.serve.server.log import ServerLog
from stoker.serve.server.sockets import refuse_connections
from stoker.serve.telemetry.starting import start_telemetry

_DRAIN_S = 30
# How long to keep accepting after new connections are refused, so that all connections already begun are accepted. With
# several processes, the parent refuses new ones at about the same time.
_SETTLE_S, _SETTLE_BESIDE_OTHERS_S = 0.3, 1.0
# File descriptors needed in addition to those of connections.
_DESCRIPTORS = 256
# Thresholds of the garbage collector. Requests leave no cycles behind, so frequent searches would find nothing.
_GARBAGE = (20_000, 10, 10)


def serve(
    settings: ServerSettings,
    sock: socket.socket,
    say: Callable[[str], None],
    worker: ServerWorker = ALONE,
) -> int:
    """Serve in this process until it is told to end.

    Raises:
        BundleError: a model cannot be loaded.
    """
    metrics = Metrics(settings.models, worker)
    models = ServedModels(settings, metrics, say, worker)
    models.load()
    telemetry = start_telemetry(settings.otel, models, worker, say)
    plane = DataPlane(settings, models, metrics, say, telemetry.tracer)
    config = uvicorn.Config(
        App(plane),
        http=Protocol,
        ws="none",
        log_config=None,  # configuring logging would close our handler
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # nothing needs to know where a request comes from
        timeout_graceful_shutdown=_DRAIN_S,
        ssl_certfile=settings.tls_certificate or None,
        ssl_keyfile=settings.tls_key or None,
        timeout_keep_alive=75,
    )
    server = Server(config, plane, sock if worker.count == 1 else None)
    _allow_descriptors(settings.connections + _DESCRIPTORS)
    # Objects that exist by now never become garbage; searching them again and again would delay requests.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    models.watch()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Handles a signal that comes before uvicorn handles it. Once uvicorn has drained, it raises the signal again.
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    plane.is_ready = True
    say("ready")
    loop = _event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve_until_told(server, sock, plane, shared=worker.count > 1))
    if settings.ledger and worker.count == 1:
        for name in models.names():
            for line in ledger.lines(name, *models.books(name)):
                say(line)
    models.close()
    telemetry.close()
    return 0


class Server(uvicorn.Server):
    """uvicorn's server, shut down in stages: not ready but still accepting, then refusing, then answering the rest.

    So a load balancer learns from `/readyz` to stop sending requests. `sock` is the listening socket, if no other
    process shares it.
    """

    def __init__(self, config: uvicorn.Config, plane: DataPlane, sock: socket.socket | None) -> None:
        super().__init__(config)
        self._plane, self._sock = plane, sock

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down in stages after SIGTERM or SIGINT; another SIGINT ends the server at once."""
        self._plane.is_ready = False
        await self._wait(self._plane.settings.drain_delay)
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
    """Raise the limit of open files to what the connections need, as far as the system allows it."""
    if importlib.util.find_spec("resource") is None:
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _serve_until_told(server: Server, sock: socket.socket, plane: DataPlane, shared: bool) -> None:
    """Serve HTTP, and gRPC if wanted, until told to end; both drain."""
    beside = None
    if plane.settings.grpc:
        from stoker.serve.grpc.server import start_server  # an extra

        beside, _ = await start_server(plane, plane.settings.grpc, shared)
    await server.serve([sock])
    if beside is not None:
        await beside.stop(_DRAIN_S)


def _event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop if it is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run_worker() -> int:
    """Serve as one of several processes, which inherit the socket from their parent."""
    descriptor, lifeline, number, count, metrics_file = sys.argv[1:]
    threading.Thread(target=_end_with_parent, args=(int(lifeline),), daemon=True).start()
    settings = ServerSettings.loads(os.environ["STOKER_SERVE_SETTINGS"])
    sock = socket.socket(fileno=int(descriptor))
    with use_handler(ServerLog(f"stoker: worker {number}: ")):
        try:
            return serve(settings, sock, LOGGER.info, ServerWorker(int(number), int(count), metrics_file))
        except StokerError as error:
            LOGGER.error(str(error))
            return error.exit_code


def _end_with_parent(lifeline: int) -> None:
    """End this process when its parent dies, because then the other end of the pipe closes."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
