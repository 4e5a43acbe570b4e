"""The agent of one machine: it starts, watches and ends workers on the supervisor's command.

    $ python -m stoker.launch.agent

Commands arrive on standard input, and reports leave on standard output. When its input ends, because the supervisor or
the connection has gone, the agent kills its workers and exits.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stoker.doctor.measure.worker_heartbeat import interval
from stoker.launch import ports
from stoker.launch.messages import (
    AgentAlive,
    AgentReady,
    Command,
    FindPorts,
    KillWorkers,
    PortsFound,
    Report,
    SendSignal,
    StartWorkers,
    WorkerEvents,
    WorkerExited,
    WorkerJoined,
    WorkerOutput,
    WorkerRefused,
    WorkerSilent,
    WorkersKilled,
    WorkerStarted,
    decode_command,
    encode,
)
from stoker.launch.processes import Spare
from stoker.launch.worker import Worker
from stoker.periodic import Every

_TICK_S = 0.1
_ALIVE_S = 1.0
# A longer gap between two ticks means that the agent itself was stopped (a frozen machine, a slow connection), so no
# worker is to blame.
_LATE_S = 1.0
_CHUNK = 64 * 1024


class Agent:
    """An agent that talks to its supervisor over two file descriptors."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._unread = b""
        self._is_connected = True
        self._round = 0
        self._heartbeat_s = 0.0
        self._workers: dict[int, Worker] = {}
        # The processes that wait to take a worker's place in the next round, by rank.
        self._spares: dict[int, Spare] = {}
        self._wants_spares = False
        self._beats = Path(tempfile.mkdtemp(prefix="stoker-agent-"))
        self._selector = selectors.DefaultSelector()
        self._selector.register(incoming, selectors.EVENT_READ, self._read_commands)
        self._alive = Every(seconds=_ALIVE_S)

    def run(self) -> None:
        """Serve the supervisor until the connection ends."""
        self._report(AgentReady(socket.gethostname(), sys.executable))
        ticked = time.monotonic()
        try:
            while self._is_connected:
                for key, _ in self._selector.select(_TICK_S):
                    key.data()
                now = time.monotonic()
                self._check_workers(late_s=now - ticked - _TICK_S if now - ticked > _LATE_S else 0.0)
                ticked = now
        finally:
            self._kill_workers()
            self._kill_spares()
            shutil.rmtree(self._beats, ignore_errors=True)

    def _read_commands(self) -> None:
        data = os.read(self._incoming, _CHUNK)
        self._is_connected = bool(data)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._obey(decode_command(line))

    def _obey(self, command: Command) -> None:
        match command:
            case FindPorts(count):
                self._report(PortsFound(ports.find_free_ports(count)))
            case StartWorkers():
                self._start_workers(command)
            case SendSignal(number):
                for worker in self._workers.values():
                    worker.send_signal(number)
            case KillWorkers():
                self._kill_workers()
                self._report(WorkersKilled(self._round))

    def _start_workers(self, command: StartWorkers) -> None:
        self._round, self._heartbeat_s = command.round, command.heartbeat
        self._alive = Every(seconds=interval(self._heartbeat_s))
        for own in command.workers:
            try:
                worker = Worker(command, own, self._beats / str(own.rank), self._spares.pop(own.rank, None))
            except OSError as error:
                self._report(WorkerRefused(self._round, own.rank, str(error)))
                continue
            self._workers[own.rank] = worker
            for output in worker.outputs:
                self._selector.register(output, selectors.EVENT_READ, self._make_reader(worker, output))
        self._kill_spares()
        self._wants_spares = command.standby

    def _start_spares(self) -> None:
        """Start a spare for each worker, once all of them train: until then they need the processors themselves."""
        workers = self._workers.values()
        if not self._wants_spares or not workers or not all(worker.is_settled for worker in workers):
            return
        self._wants_spares = False
        started = {worker.rank: worker.start_spare() for worker in workers}
        self._spares = {rank: spare for rank, spare in started.items() if spare is not None}

    def _kill_spares(self) -> None:
        while self._spares:
            self._spares.popitem()[1].kill()

    def _make_reader(self, worker: Worker, output: int) -> Callable[[], None]:
        def read() -> None:
            found = worker.read(output)
            if found is None:
                self._selector.unregister(output)
            else:
                self._report_output(worker, *found)

        return read

    def _report_output(self, worker: Worker, stream: str, lines: list[str]) -> None:
        if lines:
            self._report(WorkerOutput(self._round, worker.rank, stream, lines))

    def _report_events(self, worker: Worker) -> None:
        lines = worker.read_events()
        if lines:
            self._report(WorkerEvents(self._round, worker.rank, lines))

    def _check_workers(self, late_s: float) -> None:
        for worker in list(self._workers.values()):
            status = worker.poll()
            if status is not None:
                self._clean_up(worker)
                self._report(WorkerExited(self._round, worker.rank, status))
                continue
            self._report_events(worker)
            had_started, had_joined = worker.has_started, worker.has_joined
            worker.check(late_s)
            if worker.has_started and not had_started:
                self._report(WorkerStarted(self._round, worker.rank))
            if worker.has_joined and not had_joined:
                self._report(WorkerJoined(self._round, worker.rank))
            if worker.silent_s > self._heartbeat_s:
                seconds = round(worker.silent_s, 1)
                self._report(WorkerSilent(self._round, worker.rank, seconds, worker.is_stopped))
        self._start_spares()
        if self._alive.due():
            self._alive.mark()
            self._report(AgentAlive())

    def _clean_up(self, worker: Worker) -> None:
        """Kill a worker and whatever it left behind, and report its last lines and events."""
        # Children that the worker left behind must not hold its port or write to its files.
        worker.kill()
        for output in worker.outputs:
            if output in self._selector.get_map():
                self._selector.unregister(output)
        for stream, lines in worker.close():
            self._report_output(worker, stream, lines)
        self._report_events(worker)
        del self._workers[worker.rank]

    def _kill_workers(self) -> None:
        for worker in list(self._workers.values()):
            self._clean_up(worker)

    def _report(self, report: Report) -> None:
        data = encode(report)
        try:
            while data:
                data = data[os.write(self._outgoing, data) :]
        except BrokenPipeError:
            self._is_connected = False


def main() -> None:
    """Run an agent on standard input and output. It ignores signals, which the supervisor passes on to workers."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        # A handler is needed because workers would inherit SIG_IGN.
        signal.signal(number, lambda *_: None)
    # Stray prints must not be taken for reports.
    outgoing = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Agent(sys.stdin.fileno(), outgoing).run()


if __name__ == "__main__":
    main()
