"""Requests of one event loop, batched together without a timer.

Requests that arrive while the model runs wait; when it is free, all of them are answered by one call. A quick model
runs on the loop itself, which is the cheapest way there is; a slow one in a thread, so that the loop can still refuse
requests and say that it is well.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from stoker.serve.batching import BusyError, DeadlineError, Job, Run, now, run_together, take
from stoker.serve.http.ledger import Spent

# A call that takes longer than this does not run on the loop.
_QUICK_S = 0.01


class Asker(Protocol):
    """Who wants to know, and is told on the event loop."""

    def left(self) -> bool:
        """It does not wait any more."""

    def settled(self, answers: list[Any] | None, error: BaseException | None) -> None:
        """The answers, or what went wrong instead."""


class LoopJob(Job):
    """A job of the event loop."""

    __slots__ = ("asked", "asker", "spent")

    def __init__(
        self, arrays: list[Any], rows: int, deadline: float, asker: Asker, spent: Spent | None
    ) -> None:
        self.arrays, self.rows, self.deadline, self.asker = arrays, rows, deadline, asker
        self.spent, self.asked = spent, now() if spent is not None else 0.0
        self.answers, self.error, self.batch = None, None, None

    def late(self) -> bool:
        return self.asker.left() or super().late()

    def settle(self) -> None:
        """Tell the asker."""
        late = self.answers is None and self.error is None
        self.asker.settled(self.answers, DeadlineError("there was no answer in time") if late else self.error)


class _Awaited:
    """An asker who awaits a future; who cancels it has left."""

    __slots__ = ("future",)

    def __init__(self, future: asyncio.Future[list[Any]]) -> None:
        self.future = future

    def left(self) -> bool:
        return self.future.done()

    def settled(self, answers: list[Any] | None, error: BaseException | None) -> None:
        if self.future.done():
            return
        if answers is None:
            assert error is not None
            self.future.set_exception(error)
        else:
            self.future.set_result(answers)


class Line:
    """What waits for one model."""

    def __init__(
        self,
        run: Run,
        row_seconds: float,
        most_rows: int,
        most_waiting: int,
        ran: Callable[[int, float], None] = lambda rows, seconds: None,
    ) -> None:
        self._run, self._most_rows, self._most_waiting, self._ran = run, most_rows, most_waiting, ran
        self._waiting: deque[LoopJob] = deque()
        self._threads: ThreadPoolExecutor | None = None
        self._seconds = row_seconds
        self._busy = False
        self.rows = 0

    @property
    def slow(self) -> bool:
        """Its calls run in a thread: waiting may be long."""
        return self._seconds > _QUICK_S

    @property
    def full(self) -> bool:
        """Not one more row may wait."""
        return self.rows >= self._most_waiting

    def check(self, rows: int = 1) -> None:
        """There is room for so many more; asked before a request is parsed, a refusal costs next to nothing.

        A quick model makes room by answering: it is idle whenever the loop can ask, and to refuse costs as much.

        Raises:
            BusyError: there is not.
        """
        if self.rows and self.rows + rows > self._most_waiting and not self.slow:
            batch = self._taken()
            if batch:
                taken = now()
                self._tell(batch, taken, self._timed(batch))
        if self.rows and self.rows + rows > self._most_waiting:
            raise BusyError(f"Queue full ({self._most_waiting} rows). Retry later, or raise --queue.")

    def ask(
        self, arrays: list[Any], rows: int, timeout: float, spent: Spent | None = None
    ) -> asyncio.Future[list[Any]]:
        """The answers for these rows, or DeadlineError if the time was over first.

        Who cancels it leaves the line. `spent` is told where time went.

        Raises:
            BusyError: the line is full.
        """
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.put(arrays, rows, timeout, _Awaited(future), spent)
        return future

    def put(
        self, arrays: list[Any], rows: int, timeout: float, asker: Asker, spent: Spent | None = None
    ) -> None:
        """The same for somebody who is called: no future, and no turn of the loop more.

        Raises:
            BusyError: the line is full.
        """
        self.check(rows)
        self._waiting.append(LoopJob(arrays, rows, now() + timeout, asker, spent))
        self.rows += rows
        if not self._busy:
            self._busy = True
            loop = asyncio.get_running_loop()
            # After all that arrived with it.
            loop.call_soon(self._next, loop)

    def _taken(self) -> list[Any]:
        """The next batch; who is late is told."""
        batch, late = take(self._waiting, self._most_rows)  # type: ignore[arg-type]
        self.rows -= sum(job.rows for job in (*batch, *late))
        for job in late:
            job.settle()  # type: ignore[attr-defined]
        return batch

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._taken()
        if not batch:
            self._busy = False
        elif self.slow:
            self._threads = self._threads or ThreadPoolExecutor(1, "stoker-model")
            taken = now()
            done = loop.run_in_executor(self._threads, self._timed, batch)
            done.add_done_callback(lambda ran: self._settled(loop, batch, taken, ran.result()))
        else:
            taken = now()
            self._settled(loop, batch, taken, self._timed(batch))

    def _timed(self, batch: list[Any]) -> tuple[float, float]:
        """Seconds of the whole call, and of the model in it."""
        model = 0.0

        def run(arrays: list[Any]) -> list[Any]:
            nonlocal model
            began = now()
            try:
                return self._run(arrays)
            finally:
                model += now() - began

        started = now()
        run_together(run, batch)
        return now() - started, model

    def _settled(
        self, loop: asyncio.AbstractEventLoop, batch: list[Any], taken: float, ran: tuple[float, float]
    ) -> None:
        self._tell(batch, taken, ran)
        if self._waiting:
            loop.call_soon(self._next, loop)
        else:
            self._busy = False

    def _tell(self, batch: list[Any], taken: float, ran: tuple[float, float]) -> None:
        seconds, model = ran
        self._seconds += 0.2 * (seconds - self._seconds)
        for job in batch:
            if job.spent is not None:
                job.spent.queue = taken - job.asked
                job.spent.engine = model
                job.spent.batch = max(0.0, now() - taken - model)
        self._ran(sum(job.rows for job in batch), seconds)
        for job in batch:
            job.settle()

    def close(self) -> None:
        """After the last caller."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
