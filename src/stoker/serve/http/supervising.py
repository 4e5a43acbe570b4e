"""The parent of several workers, which starts them and outlives them.

The parent holds the socket and loads no model; a worker that dies is started again. SIGTERM makes every worker finish
what it has and end, and so does the parent's own death, however it comes.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stoker.errors import StokerError
from stoker.serve.http import ledger
from stoker.serve.http.metrics import Metrics
from stoker.serve.http.settings import Settings
from stoker.serve.http.sockets import refuse_connections

_WORKER = """
import sys
from stoker.chatter import quiet_tensorflow
with quiet_tensorflow():
    from stoker.serve.http.running import run_worker
sys.exit(run_worker())
"""
# A worker that ends sooner than this will not do better the next time at once.
_RESTART_S = 1.0


@dataclass(frozen=True)
class Tls:
    """Files of a certificate and its key; empty for plain HTTP."""

    certificate: str = ""
    key: str = ""


def supervise(
    settings: Settings, sock: socket.socket, tls: Tls, say: Callable[[str], None], workers: int
) -> int:
    """Serve with several processes until this one is told to end."""
    ended = threading.Event()
    lifeline, _ = os.pipe()  # the other end is open as long as this process lives
    children: dict[int, subprocess.Popen[bytes]] = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with tempfile.NamedTemporaryFile(prefix="stoker-metrics-") as file:
        for worker in range(workers):
            children[worker] = _started(settings, sock, lifeline, tls, Path(file.name), worker, workers)
        while not ended.wait(0.1):
            for worker, child in children.items():
                if child.poll() == StokerError.exit_code:
                    ended.set()  # what it was asked to do cannot be done, by another one neither
                elif child.returncode is not None:
                    say(f"worker {worker} ended with {child.returncode}; starting another in its place")
                    if ended.wait(_RESTART_S):
                        break
                    children[worker] = _started(
                        settings, sock, lifeline, tls, Path(file.name), worker, workers
                    )
        living = [child for child in children.values() if child.poll() is None]
        for child in living:
            child.send_signal(signal.SIGTERM)
        if living:
            time.sleep(settings.drain_delay)  # as they do, before they stop to accept
            refuse_connections(sock)
        codes = [child.wait() for child in children.values()]
        if settings.ledger:
            _tell(settings, Path(file.name), workers, say)
    return StokerError.exit_code if StokerError.exit_code in codes else int(any(codes))


def _tell(settings: Settings, file: Path, workers: int, say: Callable[[str], None]) -> None:
    """The ledger of all workers, from the counts they have left."""
    metrics = Metrics(list(settings.models), file, 0, workers)
    for name in settings.models:
        for line in ledger.lines(name, *metrics.books(name, settings, workers, "its engine", False)):
            say(line)


def _started(
    settings: Settings,
    sock: socket.socket,
    lifeline: int,
    tls: Tls,
    metrics_file: Path,
    worker: int,
    workers: int,
) -> subprocess.Popen[bytes]:
    words = [
        str(sock.fileno()),
        str(lifeline),
        tls.certificate,
        tls.key,
        str(metrics_file),
        str(worker),
        str(workers),
    ]
    environment = {**os.environ, "STOKER_SERVE_SETTINGS": settings.dumps()}
    command = [sys.executable, "-c", _WORKER, *words]
    return subprocess.Popen(command, pass_fds=[sock.fileno(), lifeline], env=environment)
