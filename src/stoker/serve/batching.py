"""The queue in front of an engine: rows that wait are answered together, without a timer.

A request that finds the engine idle runs at once. Requests that arrive while it is busy wait, and the next call answers
all of them. So an idle engine never waits, and a batch is as large as the load makes it.

`RowQueue` keeps the jobs and cuts the batches. Its two kinds differ in who calls the engine: one of the waiting threads
for `Predictor` (`CallerQueue`), the event loop for a server (`LoopQueue`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from stoker import clock
from stoker.errors import StokerError
from stoker.serve.rows import InputRows
from stoker.serve.signature import Array
from stoker.units import quantity

Run = Callable[[list[Array]], list[Array]]
"""An array for each input, in the order of the signature, to one for each output."""

# Calls that take longer than this run in a thread, not on the event loop.
_QUICK_S = 0.01


class BusyError(StokerError, RuntimeError):
    """The queue is full; the caller should try again a little later."""


class DeadlineError(StokerError, TimeoutError):
    """The answer did not come in time."""


def now() -> float:
    """Return the time in seconds, by the clock of `stoker.clock`."""
    return clock.now_ns() / 1e9


@dataclass(slots=True)
class BatchCall:
    """One batch: when it was answered, and how.

    Attributes:
        began: when its jobs left the queue.
        engine_began: when the engine was called.
        engine_s: seconds the engine ran.
        batch_s: seconds spent on joining and cutting the batch.
        rows: the number of rows of all jobs.
        jobs: the number of jobs answered together.
        traced_as: what a trace calls the batch, once one has it.
    """

    began: float
    engine_began: float
    engine_s: float
    batch_s: float
    rows: int
    jobs: int
    traced_as: object | None = None


class Job:
    """The rows of one request and their outcome: `answers` or an `error`. A job that was too late has neither."""

    __slots__ = ("answers", "call", "error", "put_at", "rows", "timeout")

    def __init__(self, rows: InputRows, timeout: float | None) -> None:
        self.rows, self.timeout, self.put_at = rows, timeout, now()
        self.answers: list[Array] | None = None
        self.error: BaseException | None = None
        self.call: BatchCall | None = None  # the call that answered it, in a server's queue

    def is_late(self) -> bool:
        """Return whether the deadline has passed, so that nobody waits for the answers any more."""
        return self.timeout is not None and now() > self.put_at + self.timeout

    def settle(self) -> None:
        """Pass the outcome to the waiting caller."""
        raise NotImplementedError

    def result(self) -> list[Array]:
        """Return the answers.

        Raises:
            DeadlineError: there are no answers yet.
            BaseException: whatever the engine raised.
        """
        if self.error is not None:
            raise self.error
        if self.answers is None:
            raise DeadlineError(f"there was no answer within {self.timeout:g} s")
        return self.answers


J = TypeVar("J", bound=Job)


def run_jobs(run: Run, jobs: Sequence[Job]) -> tuple[float, float]:
    """Answer all jobs in one call. Return when the engine was called, and how many seconds it ran.

    If the call fails, each job runs alone, so a row that cannot be answered fails only its own request.
    """
    started = engine_s = 0.0
    try:
        alone = len(jobs) == 1
        parts = (job.rows.arrays for job in jobs)
        joined = (
            jobs[0].rows.arrays if alone else [np.concatenate(column) for column in zip(*parts, strict=True)]
        )
        started = now()
        try:
            answers = run(joined)
        finally:
            engine_s = now() - started
        if not alone:
            _check_rows(answers, sum(job.rows.count for job in jobs))
        first = 0
        for job in jobs:
            last = first + job.rows.count
            job.answers = answers if alone else [output[first:last] for output in answers]
            first = last
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised again for the request that caused it
        if len(jobs) > 1:
            return started, engine_s + sum(run_jobs(run, [job])[1] for job in jobs)
        jobs[0].error = error
    return started, engine_s


def _check_rows(answers: Sequence[Array], rows: int) -> None:
    """Refuse answers that cannot be split by row: a model from elsewhere may not give one row for each row it gets."""
    if any(output.shape[:1] != (rows,) for output in answers):
        shapes = [tuple(output.shape) for output in answers]
        raise ValueError(
            f"the model was given {quantity(rows, 'row')}, and its outputs have the shapes {shapes}"
        )


class RowQueue(Generic[J]):
    """Jobs that wait for one engine. `option` names the option with which a user raises the limit of waiting rows."""

    def __init__(self, run: Run, most_rows: int, most_waiting: int, option: str) -> None:
        self._run, self._most_rows, self._most_waiting, self._option = run, most_rows, most_waiting, option
        self._waiting: deque[J] = deque()
        self._busy = False  # the engine runs, or is about to
        self.rows = 0  # the number of rows that wait

    @property
    def run(self) -> Run:
        """The engine's call itself, bypassing the queue."""
        return self._run

    def _refuse(self) -> BusyError:
        return BusyError(
            f"Queue full ({quantity(self._most_waiting, 'row')}). Retry later, or raise {self._option}."
        )

    def _append(self, job: J) -> None:
        self._waiting.append(job)
        self.rows += job.rows.count

    def _take(self) -> tuple[list[J], list[J]]:
        """Take the next batch of like shapes from the front of the queue, and the jobs that are late."""
        batch: list[J] = []
        late: list[J] = []
        rows = 0
        while self._waiting:
            job = self._waiting[0]
            if job.is_late():
                late.append(job)
            elif batch and (rows + job.rows.count > self._most_rows or not _is_alike(batch[0], job)):
                break
            else:
                batch.append(job)
                rows += job.rows.count
            self._waiting.popleft()
            self.rows -= job.rows.count
        return batch, late


def _is_alike(one: Job, other: Job) -> bool:
    """Return whether the rows of two jobs fit into one array: free sizes may differ between requests."""
    if not (one.rows.joins and other.rows.joins):
        return False
    return all(a.shape[1:] == b.shape[1:] for a, b in zip(one.rows.arrays, other.rows.arrays, strict=True))


class _CallerJob(Job):
    """The job of a waiting thread."""

    __slots__ = ("batch", "woken")

    def __init__(self, rows: InputRows, timeout: float | None) -> None:
        super().__init__(rows, timeout)
        self.batch: list[_CallerJob] | None = None  # the batch this caller has to run
        self.woken = threading.Event()

    def settle(self) -> None:
        self.woken.set()


class CallerQueue(RowQueue[_CallerJob]):
    """The queue of a `Predictor`, run by its callers' own threads.

    When a caller's call ends, it hands the engine to the first waiting caller, which answers all jobs that wait by
    then.
    """

    def __init__(self, run: Run, most_rows: int, most_waiting: int) -> None:
        super().__init__(run, most_rows, most_waiting, "queue=")
        self._lock = threading.Lock()

    def ask(self, rows: InputRows, timeout: float | None = None) -> list[Array]:
        """Answer these rows.

        Raises:
            BusyError: the queue is full.
            DeadlineError: the deadline passed first.
        """
        with self._lock:
            job = None
            if self._busy:
                if self.rows + rows.count > self._most_waiting:
                    raise self._refuse()
                job = _CallerJob(rows, timeout)
                self._append(job)
            self._busy = True
        if job is not None:
            return self._wait(job)
        try:
            return self._run(rows.arrays)
        finally:
            self._hand_over()

    def _wait(self, job: _CallerJob) -> list[Array]:
        try:
            job.woken.wait(job.timeout)
        except BaseException:
            self._withdraw(job)
            raise
        if job.batch is None and not job.woken.is_set():
            self._withdraw(job)
        if job.batch is not None:
            self._lead(job.batch)
        return job.result()

    def _withdraw(self, job: _CallerJob) -> None:
        """Remove the job of a caller that has stopped waiting."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                self.rows -= job.rows.count
                return
        if job.batch is not None:
            # This caller had been chosen to run the batch for the others.
            self._lead([one for one in job.batch if one is not job])
            job.batch = None

    def _lead(self, batch: list[_CallerJob]) -> None:
        try:
            if batch:
                run_jobs(self._run, batch)
        finally:
            for job in batch:
                job.settle()
            self._hand_over()

    def _hand_over(self) -> None:
        with self._lock:
            batch, late = self._take()
            self._busy = bool(batch)
            if batch:
                batch[0].batch = batch
        for job in (*late, *batch[:1]):
            job.settle()


# The seconds of a whole call, when it called the engine, and the seconds the engine ran.
_Timing = tuple[float, float, float]


class LoopQueue(RowQueue[Job]):
    """The queue of a served model, run by an event loop.

    A quick model runs on the loop itself, which is cheapest. A slow one runs in a thread, so that the loop can still
    refuse requests and answer health checks.
    """

    def __init__(
        self,
        run: Run,
        row_seconds: float,
        most_rows: int,
        most_waiting: int,
        observe: Callable[[int, float], None] = lambda rows, seconds: None,
    ) -> None:
        super().__init__(run, most_rows, most_waiting, "--queue")
        self._observe = observe
        self._threads: ThreadPoolExecutor | None = None
        self._seconds = row_seconds  # expected seconds of a call, learnt from past calls

    @property
    def is_slow(self) -> bool:
        """Whether calls run in a thread, so that the wait may be long."""
        return self._seconds > _QUICK_S

    @property
    def is_full(self) -> bool:
        """Whether the queue takes no more rows."""
        return self.rows >= self._most_waiting

    def check(self, rows: int = 1) -> None:
        """Check that the queue has room for `rows` rows. Before a request is parsed, a refusal costs next to nothing.

        A quick model makes room by answering waiting rows: it is idle whenever this code runs, and a refusal would cost
        as much.

        Raises:
            BusyError: there is no room.
        """
        if self.rows and self.rows + rows > self._most_waiting and not self.is_slow:
            batch = self._take_batch()
            if batch:
                started = now()
                self._settle(batch, started, self._call(batch))
        if self.rows and self.rows + rows > self._most_waiting:
            raise self._refuse()

    def put(self, job: Job) -> None:
        """Add a job to the queue; the event loop settles it.

        Raises:
            BusyError: the queue is full.
        """
        self.check(job.rows.count)
        self._append(job)
        if not self._busy:
            self._busy = True
            loop = asyncio.get_running_loop()
            loop.call_soon(self._run_next, loop)  # after all requests that arrived with it

    def close(self) -> None:
        """End the thread after the last request."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    def _take_batch(self) -> list[Job]:
        batch, late = self._take()
        for job in late:
            job.settle()
        return batch

    def _run_next(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, started = self._take_batch(), now()
        if not batch:
            self._busy = False
        elif self.is_slow:
            self._threads = self._threads or ThreadPoolExecutor(1, "stoker-model")
            done = loop.run_in_executor(self._threads, self._call, batch)
            done.add_done_callback(lambda call: self._go_on(loop, batch, started, call.result()))
        else:
            self._go_on(loop, batch, started, self._call(batch))

    def _call(self, batch: list[Job]) -> _Timing:
        started = now()
        engine_began, engine_s = run_jobs(self._run, batch)
        return now() - started, engine_began, engine_s

    def _go_on(
        self, loop: asyncio.AbstractEventLoop, batch: list[Job], started: float, call: _Timing
    ) -> None:
        self._settle(batch, started, call)
        if self._waiting:
            loop.call_soon(self._run_next, loop)
        else:
            self._busy = False

    def _settle(self, batch: list[Job], started: float, timing: _Timing) -> None:
        call_s, engine_began, engine_s = timing
        self._seconds += 0.2 * (call_s - self._seconds)
        batch_s = max(0.0, now() - started - engine_s)
        call = BatchCall(started, engine_began, engine_s, batch_s, 0, len(batch))
        for job in batch:
            job.call = call
            call.rows += job.rows.count
        self._observe(call.rows, call_s)
        for job in batch:
            job.settle()
