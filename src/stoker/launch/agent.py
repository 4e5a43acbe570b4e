"""The workers of one machine: started, watched and ended as the supervisor says, on standard input and output.

    $ python -m stoker.launch.agent

It ends, and all workers with it, when its input does: when the supervisor is gone, or the connection to it.
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
from pathlib import Path
from typing import Any

from stoker.doctor.measure.worker_heartbeat import interval
from stoker.launch import ports
from stoker.launch.messages import Message, decode, encode
from stoker.launch.worker import Worker
from stoker.periodic import Every

_TICK_S = 0.1
_ALIVE_S = 1.0
# Later than this, the agent itself stood still (a frozen machine, a slow connection): no worker is blamed for that.
_LATE_S = 1.0
_CHUNK = 64 * 1024


class Agent:
    """Speaks with a supervisor over two file descriptors."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._unread = b""
        self._open = True
        self._round = 0
        self._heartbeat = 0.0
        self._workers: dict[int, Worker] = {}
        self._beats = Path(tempfile.mkdtemp(prefix="stoker-agent-"))
        self._selector = selectors.DefaultSelector()
        self._selector.register(incoming, selectors.EVENT_READ, self._hear)
        self._alive = Every(seconds=_ALIVE_S)

    def run(self) -> None:
        """Until the supervisor is gone."""
        self._say("hello", host=socket.gethostname(), python=sys.executable)
        ticked = time.monotonic()
        try:
            while self._open:
                for key, _ in self._selector.select(_TICK_S):
                    key.data()
                now = time.monotonic()
                self._look_after(late=now - ticked - _TICK_S if now - ticked > _LATE_S else 0.0)
                ticked = now
        finally:
            self._kill()
            shutil.rmtree(self._beats, ignore_errors=True)

    def _hear(self) -> None:
        data = os.read(self._incoming, _CHUNK)
        self._open = bool(data)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._obey(decode(line))

    def _obey(self, message: Message) -> None:
        if message["say"] == "ports":
            self._say("ports", ports=ports.free(message["count"]))
        elif message["say"] == "start":
            self._start(message)
        elif message["say"] == "signal":
            for worker in self._workers.values():
                worker.signal(message["number"])
        elif message["say"] == "kill":
            self._kill()
            self._say("killed", round=self._round)

    def _start(self, message: dict[str, Any]) -> None:
        self._round, self._heartbeat = message["round"], message["heartbeat"]
        self._alive = Every(seconds=interval(self._heartbeat))
        for one in message["workers"]:
            rank = one["rank"]
            try:
                worker = Worker(rank, one["port"], message, one["environment"], self._beats / str(rank))
            except OSError as error:
                self._say("refused", round=self._round, rank=rank, why=str(error))
                continue
            self._workers[rank] = worker
            for output in worker.outputs:
                self._selector.register(output, selectors.EVENT_READ, self._reader(worker, output))

    def _reader(self, worker: Worker, output: int) -> Any:
        def read() -> None:
            found = worker.read(output)
            if found is None:
                self._selector.unregister(output)
            else:
                self._pass_on(worker, *found)

        return read

    def _pass_on(self, worker: Worker, stream: str, lines: list[str]) -> None:
        if lines:
            self._say("text", round=self._round, rank=worker.rank, stream=stream, lines=lines)

    def _look_after(self, late: float) -> None:
        for worker in list(self._workers.values()):
            status = worker.poll()
            if status is not None:
                self._bury(worker)
                self._say("exit", round=self._round, rank=worker.rank, status=status)
                continue
            was_up, had_joined = worker.up, worker.joined
            worker.look(late)
            if worker.up and not was_up:
                self._say("up", round=self._round, rank=worker.rank)
            if worker.joined and not had_joined:
                self._say("joined", round=self._round, rank=worker.rank)
            if worker.silent_s > self._heartbeat:
                self._say(
                    "silent",
                    round=self._round,
                    rank=worker.rank,
                    seconds=round(worker.silent_s, 1),
                    stopped=worker.stopped,
                )
        if self._alive.due():
            self._alive.mark()
            self._say("alive")

    def _bury(self, worker: Worker) -> None:
        """A worker has ended: what it still said, and everything of it let go."""
        # What it started and left behind must not hold its port, or write to its files.
        worker.kill()
        for output in worker.outputs:
            if output in self._selector.get_map():
                self._selector.unregister(output)
        for stream, lines in worker.close():
            self._pass_on(worker, stream, lines)
        del self._workers[worker.rank]

    def _kill(self) -> None:
        for worker in list(self._workers.values()):
            self._bury(worker)

    def _say(self, say: str, **fields: Any) -> None:
        data = encode(say, **fields)
        try:
            while data:
                data = data[os.write(self._outgoing, data) :]
        except BrokenPipeError:
            self._open = False


def main() -> None:
    """An agent on standard input and output. Signals are the supervisor's to pass on: those of a terminal mean it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A handler, since what is ignored would be ignored by the workers as well.
        signal.signal(number, lambda *_: None)
    # What anybody prints by mistake must not be taken for a message.
    outgoing = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Agent(sys.stdin.fileno(), outgoing).run()


if __name__ == "__main__":
    main()
