"""The parent of several workers, which starts them and outlives them.

The parent holds the socket and loads no model; a worker that dies is started again. SIGTERM makes every worker finish
its requests and end, and so does the death of the parent, whatever its cause.
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

from stoker.errors import StokerError
from stoker.serve.plane import ledger
from stoker.serve.plane.metrics import Metrics
from stoker.serve.plane.settings import ServerSettings, ServerWorker
from stoker.serve.server.sockets import refuse_connections

_WORKER = """
import sys
from stoker.chatter import quiet_tensorflow
with quiet_tensorflow():
    from stoker.serve.server.running import run_worker
sys.exit(run_worker())
"""
# How long to wait before a worker that died is started again.
_RESTART_S = 1.0


def supervise(settings: ServerSettings, sock: socket.socket, say: Callable[[str], None], workers: int) -> int:
    """Serve with several processes until this one is told to end."""
    ended = threading.Event()
    lifeline, _ = os.pipe()  # the other end stays open as long as this process lives
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: ended.set())
    with tempfile.NamedTemporaryFile(prefix="stoker-metrics-") as file:

        def start(number: int) -> subprocess.Popen[bytes]:
            return _start_worker(settings, sock, lifeline, ServerWorker(number, workers, file.name))

        children = {number: start(number) for number in range(workers)}
        while not ended.wait(0.1):
            for number, child in children.items():
                if child.poll() == StokerError.exit_code:
                    ended.set()  # the request itself is at fault, so another worker would fail, too
                elif child.returncode is not None:
                    say(f"worker {number} ended with {child.returncode}; starting another in its place")
                    if ended.wait(_RESTART_S):
                        break
                    children[number] = start(number)
        living = [child for child in children.values() if child.poll() is None]
        for child in living:
            child.send_signal(signal.SIGTERM)
        if living:
            time.sleep(settings.drain_delay)  # as the workers do before they stop accepting
            refuse_connections(sock)
        codes = [child.wait() for child in children.values()]
        if settings.ledger:
            # The file holds the counts of all workers.
            metrics = Metrics(settings.models, ServerWorker(0, workers, file.name))
            for name in settings.models:
                for line in ledger.lines(name, *metrics.books(name, settings.batch, "its engine", False)):
                    say(line)
    if StokerError.exit_code in codes:
        return StokerError.exit_code
    # The signal itself ends a worker that does not serve yet; a worker that died earlier would have been started again.
    return int(any(child.returncode not in (0, -signal.SIGTERM) for child in living))


def _start_worker(
    settings: ServerSettings, sock: socket.socket, lifeline: int, worker: ServerWorker
) -> subprocess.Popen[bytes]:
    words = [sock.fileno(), lifeline, worker.number, worker.count, worker.metrics_file]
    environment = {**os.environ, "STOKER_SERVE_SETTINGS": settings.dumps()}
    command = [sys.executable, "-c", _WORKER, *map(str, words)]
    return subprocess.Popen(command, pass_fds=[sock.fileno(), lifeline], env=environment)
