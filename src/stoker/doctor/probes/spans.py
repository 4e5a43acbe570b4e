"""Windows of spans: a few stretches of consecutive steps kept span by span, for the replay and the page.

The recorder keeps only sums, which do not show what overlapped with what. A window opens at the end of a step, keeps
what the main thread does, and closes after some steps or spans. Windows open less and less often (each time the run has
doubled), and if there are too many, middle ones are dropped. So memory does not grow with the run.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from stoker import clock
from stoker.processors import main_thread_wait_ns

MAX_WINDOWS = 8
MAX_SPANS = 480
MAX_STEPS = 48
# The first steps trace, optimise and fill buffers.
_FIRST_STEP = 2


@dataclass
class Span:
    """An interval of the main thread, cut where another began inside it. Times are in nanoseconds."""

    start: int
    end: int
    account: int
    # The line, or an object that knows the line when the window is written: a function learns its callers later.
    site: object = None
    name: str = ""
    wait: int = 0


@dataclass
class Window:
    """Consecutive steps; `ends` holds (time, rank, steps, source) for each step that ended."""

    start: int
    cpu_start: int
    spans: list[Span] = field(default_factory=list)
    ends: list[tuple[int, int, int, object]] = field(default_factory=list)
    end: int = 0
    cpu_ns: int = 0
    # The time in which the main thread was ready to run while other processes had all processors: the system's counter
    # at the window's start, and the time in the window.
    delay_start: int = 0
    delay_ns: int = 0
    full: bool = False

    def add(self, start: int, end: int, account: int, joins: tuple[int, ...] = ()) -> None:
        """Add an interval. It continues the last span if that has the same account, or one of `joins`."""
        spans = self.spans
        if spans:
            last = spans[-1]
            if last.end == start and last.site is None and (last.account == account or last.account in joins):
                last.end = end
                if last.account != account:
                    last.account = account
                    self._join_stretches()
                return
        if end == start:
            return
        if len(spans) >= MAX_SPANS:
            self.full = True
            return
        spans.append(Span(start, end, account))

    def _join_stretches(self) -> None:
        """Join the last two spans if the later one begins where the earlier one ends."""
        if len(self.spans) < 2:
            return
        earlier, later = self.spans[-2:]
        if earlier.end == later.start and earlier.account == later.account and earlier.site is None:
            earlier.end = later.end
            self.spans.pop()

    def label(self, started: int, account: int, site: object, name: str, wait: int = 0) -> None:
        """Give the unnamed spans of an account, from `started` on, a site and a name. The last one gets the wait."""
        for span in reversed(self.spans):
            if span.start < started:
                return
            if span.account == account and span.site is None:
                span.site, span.name, span.wait, wait = site, name, min(wait, span.end - span.start), 0

    def claim(self, started: int, site: object, name: str) -> None:
        """Assign all spans without a site, from `started` on, to a call that has just ended."""
        for span in reversed(self.spans):
            if span.start < started:
                return
            if span.site is None:
                span.site, span.name = site, span.name or name

    def take_over(self, started: int, site: object, apart: Collection[int]) -> None:
        """Assign all spans from `started` on to a call that has just ended, except those of some accounts."""
        for span in reversed(self.spans):
            if span.start < started:
                return
            if span.account not in apart:
                span.site = site


class SpanWindows:
    """Opens and closes windows as steps end."""

    def __init__(self) -> None:
        self.kept: list[Window] = []
        self.open: Window | None = None
        # The window kept while TensorFlow's profiler is on. It serves the trace but not prices, since the profiler
        # slows the program.
        self.beside: Window | None = None
        self._steps = 0
        self._next = _FIRST_STEP
        # The best class of steps so far. The reads around a training step must not fill its windows.
        self._rank = 99

    def step_ended(self, now: int, rank: int, steps: int, source: object) -> Window | None:
        """Note the end of a step from any source, and return the window that is open from here on."""
        window = self.open
        if rank > self._rank:
            return window or self.beside
        # Compiled and eager updates are one class.
        self._rank = max(rank, 1)
        self._steps += 1
        if window is not None:
            window.ends.append((now, rank, steps, source))
            if window.full or len(window.ends) >= MAX_STEPS:
                self._close(window, now)
        elif self._steps >= self._next:
            self.open = _open_window(now)
        return self.open or self._step_beside(now, rank, steps, source)

    def begin_again(self, now: int) -> Window | None:
        """Open the window again, because the step that opened it ends only here."""
        if self.open is not None and not self.open.ends:
            self.open = _open_window(now)
        return self.open or self.beside

    def _step_beside(self, now: int, rank: int, steps: int, source: object) -> Window | None:
        """Note a step's end in the window beside the profiler's, which begins at the first step's end."""
        window = self.beside
        if window is not None and window.start:
            window.ends.append((now, rank, steps, source))
        elif window is not None:
            window.start = now
        return window

    def _close(self, window: Window, now: int) -> None:
        window.end, window.cpu_ns = now, time.process_time_ns() - window.cpu_start
        window.delay_ns = main_thread_wait_ns() - window.delay_start
        self.open = None
        self._next = max(self._steps + 1, 2 * self._steps - MAX_STEPS)
        self.kept.append(window)
        if len(self.kept) > MAX_WINDOWS:
            # The first window shows the beginning; the last ones show the long rest.
            del self.kept[1]

    def all(self) -> list[Window]:
        """Return the closed windows, and the open one up to now. Safe to call from another thread."""
        window = self.open
        if window is None or not window.ends:
            return list(self.kept)
        used = time.process_time_ns() - window.cpu_start
        delay = main_thread_wait_ns() - window.delay_start
        so_far = replace(
            window, spans=list(window.spans), ends=list(window.ends), cpu_ns=used, delay_ns=delay
        )
        return [*self.kept, replace(so_far, end=clock.now_ns())]


def _open_window(now: int) -> Window:
    return Window(now, time.process_time_ns(), delay_start=main_thread_wait_ns())
