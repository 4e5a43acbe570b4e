"""Callers of several threads, batched together without a timer: whoever finds the engine idle runs at once.

A caller who finds it busy waits in line. Whoever has run hands the engine over to the first in line, who runs for
all who wait by then. So an idle engine never waits, a batch is as large as the load makes it, and no thread is needed
beside the callers' own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stoker import clock
from stoker.errors import StokerError

Run = Callable[[list[Any]], list[Any]]
"""An array for each input, in the order of the signature, to one for each output."""


class BusyError(StokerError, RuntimeError):
    """Too many rows wait already: try again a little later."""


class DeadlineError(StokerError, TimeoutError):
    """The answer did not come within the time it was wanted in."""


class Job:
    """One caller's rows, and what becomes of them."""

    __slots__ = ("answers", "arrays", "batch", "deadline", "error", "rows", "woken")

    def __init__(self, arrays: list[Any], rows: int, deadline: float | None) -> None:
        self.arrays, self.rows, self.deadline = arrays, rows, deadline
        self.answers: list[Any] | None = None
        self.error: BaseException | None = None
        self.batch: list[Job] | None = None  # this caller's to run
        self.woken = threading.Event()

    def late(self) -> bool:
        """Nobody waits for it any more."""
        return self.deadline is not None and now() > self.deadline


def now() -> float:
    """Seconds on the one clock."""
    return clock.now_ns() / 1e9


def run_together(run: Run, jobs: Sequence[Job]) -> None:
    """Run all jobs in one call and give each its own rows of the answer.

    If the call fails, each runs alone, so that a row that cannot be answered is the trouble of its own caller only.
    """
    try:
        if len(jobs) == 1:
            jobs[0].answers = run(jobs[0].arrays)
            return
        joined = [np.concatenate(parts) for parts in zip(*(job.arrays for job in jobs), strict=True)]
        answers = run(joined)
        first = 0
        for job in jobs:
            job.answers = [one[first : first + job.rows] for one in answers]
            first += job.rows
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised again for whom it concerns
        if len(jobs) == 1:
            jobs[0].error = error
            return
        for job in jobs:
            run_together(run, [job])


def take(waiting: deque[Job], most_rows: int) -> tuple[list[Job], list[Job]]:
    """From the front of the line: the next batch of like shapes, and who is late."""
    batch: list[Job] = []
    late: list[Job] = []
    rows = 0
    while waiting:
        job = waiting[0]
        if job.late():
            late.append(waiting.popleft())
            continue
        if batch and (rows + job.rows > most_rows or not _alike(batch[0], job)):
            break
        batch.append(waiting.popleft())
        rows += job.rows
    return batch, late


def _alike(one: Job, other: Job) -> bool:
    """Sizes that are free may differ between callers; such rows cannot be one array."""
    return all(a.shape[1:] == b.shape[1:] for a, b in zip(one.arrays, other.arrays, strict=True))


class Batcher:
    """The line before one engine."""

    def __init__(self, run: Run, most_rows: int, most_waiting: int) -> None:
        self._run, self._most_rows, self._most_waiting = run, most_rows, most_waiting
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._rows = 0
        self._busy = False

    def ask(self, arrays: list[Any], rows: int, timeout: float | None = None) -> list[Any]:
        """The answers for these rows.

        Raises:
            BusyError: the line is full.
            DeadlineError: the time was over first.
        """
        with self._lock:
            alone = not self._busy
            if alone:
                self._busy = True
            else:
                if self._rows + rows > self._most_waiting:
                    raise BusyError(f"Queue full ({self._most_waiting} rows). Retry later, or raise queue=.")
                job = Job(arrays, rows, None if timeout is None else now() + timeout)
                self._waiting.append(job)
                self._rows += rows
        if not alone:
            return self._wait(job, timeout)
        try:
            return self._run(arrays)
        finally:
            self._hand_over()

    def _wait(self, job: Job, timeout: float | None) -> list[Any]:
        try:
            job.woken.wait(timeout)
        except BaseException:
            self._withdraw(job)
            raise
        if job.batch is None and not job.woken.is_set():
            self._withdraw(job)
        if job.batch is not None:
            self._lead(job.batch)
        if job.error is not None:
            raise job.error
        if job.answers is None:
            raise DeadlineError(f"there was no answer within {timeout:g} s")
        return job.answers

    def _withdraw(self, job: Job) -> None:
        """Its caller has gone."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                self._rows -= job.rows
                return
        if job.batch is not None:
            # It had been chosen to run for others.
            self._lead([one for one in job.batch if one is not job])
            job.batch = None

    def _lead(self, batch: list[Job]) -> None:
        try:
            if batch:
                run_together(self._run, batch)
        finally:
            for job in batch:
                job.woken.set()
            self._hand_over()

    def _hand_over(self) -> None:
        with self._lock:
            batch, late = take(self._waiting, self._most_rows)
            self._rows -= sum(job.rows for job in (*batch, *late))
            if batch:
                batch[0].batch = batch
            else:
                self._busy = False
        for job in late:
            job.woken.set()
        if batch:
            batch[0].woken.set()
