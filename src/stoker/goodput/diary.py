"""The job's event files: the events that `stoker launch` notes, and those of its workers, which agents pass on."""

from __future__ import annotations

import time
from pathlib import Path

from stoker.goodput.events import ClockTied, Event, JobEnded, RoundBegun, RoundOver, WorkerEnded, encode
from stoker.logs import LOGGER

EVENTS = "events"
SUFFIX = ".events"


class JobDiary:
    """The event files of one job.

    Args:
        directory: the job's directory.
        restarts: how many times a scheduler had restarted the job before.
        rank: the only worker that runs here, if a scheduler starts each worker by itself.
    """

    def __init__(self, directory: Path, restarts: int = 0, rank: int | None = None) -> None:
        self._directory = directory / EVENTS
        self._restarts = restarts
        self._is_broken = False
        name = "launch" if rank is None else f"launch-{restarts}-{rank}"
        self._own = self._directory / f"{name}{SUFFIX}"
        self._write(ClockTied.now())

    def begin_round(self, number: int, ranks: list[int]) -> None:
        """Note that all workers are about to start."""
        self._write(RoundBegun(time.monotonic_ns(), self._restarts + number, ranks))

    def note_end_of_worker(self, number: int, rank: int) -> None:
        """Note that a worker's process has ended."""
        self._write(WorkerEnded(time.monotonic_ns(), self._restarts + number, rank))

    def end_round(self, number: int, kind: str, line: str) -> None:
        """Note that no worker is left."""
        self._write(RoundOver(time.monotonic_ns(), self._restarts + number, kind, line))

    def end_job(self, *, done: bool) -> None:
        """Note that the job is over."""
        self._write(JobEnded(time.monotonic_ns(), done))

    def add_events(self, number: int, rank: int, lines: str) -> None:
        """Add the events that a worker noted."""
        path = self._directory / f"worker-{self._restarts + number}-{rank}{SUFFIX}"
        self._append(path, lines.encode("utf-8"))

    def _write(self, event: Event) -> None:
        self._append(self._own, encode(event))

    def _append(self, path: Path, data: bytes) -> None:
        if self._is_broken:
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with path.open("ab", buffering=0) as file:
                file.write(data)
        except OSError as error:
            self._is_broken = True
            LOGGER.warning(
                "cannot write to %s (%s): the job has no ledger of its time", self._directory, error.strerror
            )
