"""One worker's process, as its agent sees it: output, heartbeat, whether it has joined, how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from stoker.doctor.measure import bootstrap, supervise
from stoker.doctor.measure.worker_heartbeat import VARIABLE, interval
from stoker.launch import ports
from stoker.launch.lines import Lines

_CHUNK = 64 * 1024
_DOOR = str(Path(bootstrap.__file__).parent)


class Worker:
    """A process that was started, in a session of its own so that all it starts can be ended with it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, rank: int, port: int, start: dict[str, Any], own: dict[str, str], beat: Path) -> None:
        self.rank = rank
        self.port = port
        self.up = self.joined = False
        self._beat = beat
        beat.touch()
        self._beaten = beat.stat().st_mtime_ns
        self._seen = time.monotonic()
        environment = {
            **os.environ,
            **start["environment"],
            **own,
            VARIABLE: f"{beat}:{interval(start['heartbeat'])}",
        }
        if start["door"]:
            _open_door(environment)
        self._process = subprocess.Popen(
            [sys.executable, *start["arguments"]],
            cwd=start["directory"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=supervise.in_child(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        )
        self._lines: dict[int, tuple[str, Lines]] = {}
        for name, pipe in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._lines[pipe.fileno()] = (name, Lines())

    @property
    def outputs(self) -> list[int]:
        """The descriptors to wait for."""
        return list(self._lines)

    def read(self, output: int) -> tuple[str, list[str]] | None:
        """The stream's name and the lines that have come; None when it has ended."""
        name, lines = self._lines[output]
        try:
            data = os.read(output, _CHUNK)
        except BlockingIOError:
            return name, []
        return (name, lines.add(data)) if data else None

    def poll(self) -> int | None:
        """How it ended, or None."""
        return self._process.poll()

    def look(self, late: float) -> None:
        """See whether it beats and listens; `late` seconds are those in which the agent itself stood still."""
        self._seen += late
        beaten = self._beat.stat().st_mtime_ns
        if beaten != self._beaten:
            self._beaten, self._seen, self.up = beaten, time.monotonic(), True
        if self.up and not self.joined:
            self.joined = ports.listening(self.port)

    @property
    def silent_s(self) -> float:
        """Seconds since the last beat, once there was one."""
        return time.monotonic() - self._seen if self.up else 0.0

    @property
    def stopped(self) -> bool:
        """Whether the system says that it was stopped."""
        try:
            state = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        except OSError:
            return False
        return state.split()[0] in ("T", "t")

    def signal(self, number: int) -> None:
        """To the worker itself; what it started is its own affair."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """At once, with all it started; returns when it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> list[tuple[str, list[str]]]:
        """Let go of its pipes: the last lines of each stream."""
        last = []
        for output, (name, lines) in self._lines.items():
            while (more := self._rest(output)) is not None:
                last.append((name, lines.add(more)))
            last.append((name, lines.end()))
        self._lines = {}
        pipes: list[IO[bytes] | None] = [self._process.stdout, self._process.stderr]
        for pipe in pipes:
            if pipe is not None:
                pipe.close()
        return [(name, found) for name, found in last if found]

    @staticmethod
    def _rest(output: int) -> bytes | None:
        """What is in a pipe now; None if that is nothing, though one that it started may hold it open."""
        try:
            return os.read(output, _CHUNK) or None
        except BlockingIOError:
            return None


def _open_door(environment: dict[str, str]) -> None:
    """Python shall import our `sitecustomize` first, which begins the heartbeat and leaves no trace."""
    own = environment.get("PYTHONPATH")
    if own is not None:
        environment["STOKER_PYTHONPATH"] = own
    environment["PYTHONPATH"] = os.pathsep.join([_DOOR, own] if own else [_DOOR])
