"""One worker's process as its agent sees it: output, heartbeat, whether it has joined, and how it ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

from stoker.doctor.measure import worker_spare
from stoker.doctor.measure.bootstrap import open_door
from stoker.doctor.measure.worker_heartbeat import VARIABLE as HEARTBEAT
from stoker.doctor.measure.worker_heartbeat import interval
from stoker.goodput import journal
from stoker.goodput.events import StepsDone
from stoker.launch import ports
from stoker.launch.lines import LineSplitter
from stoker.launch.messages import StartWorkers, WorkerStart
from stoker.launch.processes import Spare, is_stopped, kill_group, start_process

_CHUNK = 64 * 1024
# How a step looks in a worker's journal, and how long a worker that notes none is left alone.
_STEPS = f'{{"say":"{StepsDone.say}"'
_SETTLED_S = 60.0


class Worker:
    """A running process, and what its agent knows of it.

    Args:
        start: the settings that all workers of the round share.
        own: the settings of this worker alone.
        beat_file: the file that the worker's heartbeat touches.
        spare: a process that waits to become this worker, if there is one.

    Raises:
        OSError: the worker cannot be started.
    """

    def __init__(
        self, start: StartWorkers, own: WorkerStart, beat_file: Path, spare: Spare | None = None
    ) -> None:
        self.rank = own.rank
        self.has_started = self.has_joined = self.has_stepped = False
        self._start, self._port = start, own.port
        self._beat_file = beat_file
        beat_file.touch()
        self._last_beat_ns = beat_file.stat().st_mtime_ns
        self._started_at = self._last_beat_at = time.monotonic()
        self._events = _Tail(beat_file.with_suffix(f".events-{start.round}"))
        self._environment = {
            **os.environ,
            **start.environment,
            **own.environment,
            HEARTBEAT: f"{beat_file}:{interval(start.heartbeat)}",
            journal.VARIABLE: str(self._events.path),
        }
        if start.door:
            open_door(self._environment)
        taken = spare.take_place(start, self._environment) if spare is not None else None
        self._imports = spare.imports if spare is not None and taken is not None else None
        self._notes = beat_file.with_suffix(f".imports-{start.round}")
        notes = {worker_spare.NOTES: str(self._notes)} if start.standby else {}
        self._process = taken or start_process(start, {**self._environment, **notes})
        self._splitters: dict[int, tuple[str, LineSplitter]] = {}
        self._pipes = []
        for name, pipe in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._pipes.append(pipe)
            self._splitters[pipe.fileno()] = (name, LineSplitter())

    @property
    def outputs(self) -> list[int]:
        """The file descriptors of the worker's output."""
        return list(self._splitters)

    def read(self, output: int) -> tuple[str, list[str]] | None:
        """Read the lines that have arrived, with the stream's name; None when the stream has ended."""
        name, splitter = self._splitters[output]
        try:
            data = os.read(output, _CHUNK)
        except BlockingIOError:
            return name, []
        return (name, splitter.add(data)) if data else None

    def read_events(self) -> str:
        """Read the lines that the worker has written to its journal since the last call."""
        lines = self._events.read()
        self.has_stepped = self.has_stepped or _STEPS in lines
        return lines

    def poll(self) -> int | None:
        """Return the worker's exit status; None while it runs."""
        return self._process.poll()

    def check(self, late_s: float) -> None:
        """Check the worker's heartbeat and port. The agent itself was stopped for `late_s` seconds."""
        self._last_beat_at += late_s
        beat_ns = self._beat_file.stat().st_mtime_ns
        if beat_ns != self._last_beat_ns:
            self._last_beat_ns, self._last_beat_at, self.has_started = beat_ns, time.monotonic(), True
        if self.has_started and not self.has_joined:
            self.has_joined = ports.is_listening(self._port)

    @property
    def silent_s(self) -> float:
        """The seconds since the last heartbeat; 0 before the first one."""
        return time.monotonic() - self._last_beat_at if self.has_started else 0.0

    @property
    def is_stopped(self) -> bool:
        """Whether the system lists the worker as stopped."""
        return is_stopped(self._process.pid)

    @property
    def is_settled(self) -> bool:
        """Whether the worker has trained or, in case it never says so, has run for a while."""
        return self.has_stepped or time.monotonic() - self._started_at > _SETTLED_S

    def start_spare(self) -> Spare | None:
        """Start a process that can take this worker's place in the next round; None if no process can."""
        imports = self._imports or worker_spare.read_notes(self._notes)
        if imports is None:
            return None
        try:
            return Spare(self._start, self._environment, imports, self._beat_file.with_suffix(".spare"))
        except OSError:
            return None

    def send_signal(self, number: int) -> None:
        """Send a signal to the worker itself, not to its children."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the worker with all its children; return when it is dead."""
        kill_group(self._process)

    def close(self) -> list[tuple[str, list[str]]]:
        """Close the worker's pipes; return the last lines of each stream."""
        last = []
        for output, (name, splitter) in self._splitters.items():
            while (more := self._read_rest(output)) is not None:
                last.append((name, splitter.add(more)))
            last.append((name, splitter.finish()))
        self._splitters = {}
        for pipe in self._pipes:
            pipe.close()
        return [(name, lines) for name, lines in last if lines]

    @staticmethod
    def _read_rest(output: int) -> bytes | None:
        """Read the rest of a pipe; None if it is empty, although a child may still hold it open."""
        try:
            return os.read(output, _CHUNK) or None
        except BlockingIOError:
            return None


class _Tail:
    """The lines that a process adds to a file, whole lines at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def read(self) -> str:
        """Read the lines added since the last call."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return ""
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        return whole.decode("utf-8", "replace")
