"""The processes beside the workers: the socket they share, and the parent that starts them and outlives them.

The parent holds the socket and loads no model; a worker that dies is started again. SIGTERM makes every worker finish
what it has and end.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stoker.errors import StokerError, UsageError
from stoker.serve.http import ledger
from stoker.serve.http.metrics import Metrics
from stoker.serve.http.settings import Settings

_BACKLOG = 2048
# A worker that ends sooner than this will not do better the next time at once.
_RESTART_S = 1.0


@dataclass(frozen=True)
class Tls:
    """Files of a certificate and its key; empty for plain HTTP."""

    certificate: str = ""
    key: str = ""


def listening(host: str, port: int) -> socket.socket:
    """A socket to serve on; port 0 takes a free one.

    Raises:
        UsageError: it cannot be had.
    """
    try:
        # With its protocol named: event loops send small answers at once (TCP_NODELAY) only on sockets that say TCP.
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error}") from None
    found.listen(_BACKLOG)
    found.set_inheritable(True)
    return found


def supervise(
    settings: Settings, sock: socket.socket, tls: Tls, say: Callable[[str], None], workers: int
) -> int:
    """Serve with several processes until this one is told to end."""
    ended = threading.Event()
    children: dict[int, subprocess.Popen[bytes]] = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with tempfile.NamedTemporaryFile(prefix="stoker-metrics-") as file:
        for worker in range(workers):
            children[worker] = _started(settings, sock, tls, Path(file.name), worker, workers)
        while not ended.wait(0.1):
            for worker, child in children.items():
                if child.poll() == StokerError.exit_code:
                    ended.set()  # what it was asked to do cannot be done, by another one neither
                elif child.returncode is not None:
                    say(f"worker {worker} ended with {child.returncode}; another one takes its place")
                    if ended.wait(_RESTART_S):
                        break
                    children[worker] = _started(settings, sock, tls, Path(file.name), worker, workers)
        for child in children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
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
    settings: Settings, sock: socket.socket, tls: Tls, metrics_file: Path, worker: int, workers: int
) -> subprocess.Popen[bytes]:
    words = [str(sock.fileno()), tls.certificate, tls.key, str(metrics_file), str(worker), str(workers)]
    environment = {**os.environ, "STOKER_SERVE_SETTINGS": settings.dumps()}
    command = [sys.executable, "-m", "stoker.serve.http.running", *words]
    return subprocess.Popen(command, pass_fds=[sock.fileno()], env=environment)
