"""The events that TensorFlow's profiler saw in a few windows, on our clock: for a trace alongside our own spans.

The profiler counts from the start of its session, on a clock of its own. Stoker makes marks at known times and finds
them again among the profiler's events. That shows how far the two clocks are apart, to within a few microseconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stoker.doctor.attach.gently import gently
from stoker.doctor.probes.profiler_trace import Threads
from stoker.doctor.probes.spans import Window
from stoker.tf_internals.types import TraceMe

MARK = "stoker clock"
_MARKS = 8
# The first few windows are kept, then fewer and fewer, so that a run of any length has some from each part of it.
MAX_WINDOWS = 12
_MAX_EVENTS = 2000


@dataclass(frozen=True)
class WindowEvents:
    """A window: its start on our clock, and by thread the start, length (both in ns) and name of each event."""

    start_ns: int
    length_ns: int
    threads: dict[str, list[tuple[int, int, str]]]
    # Our own spans of the same moments.
    beside: Window


class ClockMarks:
    """Marks in an open session, each with the time on our clock before and after it."""

    def __init__(self, trace_me: TraceMe, now_ns: Callable[[], int]) -> None:
        self._pairs: list[tuple[int, int]] = []
        for _ in range(_MARKS):
            before = now_ns()
            trace_me(MARK).Stop()
            self._pairs.append((before, now_ns()))

    def zero_ns(self, threads: Threads) -> int | None:
        """Return when the session began, on our clock; None if the marks were not found again."""
        seen = sorted(
            (start + end) // 2
            for _, events in threads.values()
            for start, end, name, _ in events
            if name == MARK
        )
        if len(seen) != len(self._pairs):
            return None
        pairs = zip(self._pairs, seen, strict=True)
        (before, after), at = min(pairs, key=lambda pair: pair[0][1] - pair[0][0])
        return (before + after) // 2 - at


def is_kept(number: int) -> bool:
    """Return whether the window with this number, from 0, is kept: 0 to 3, then 4, 8, 16 ..."""
    return number < 4 or (number & (number - 1) == 0 and number < 4 << (MAX_WINDOWS - 4))


def window_events(threads: Threads, zero_ns: int, length_ns: int, beside: Window) -> WindowEvents:
    """Return the longest events of a window. The others are too short to be seen beside them."""
    kept: dict[str, list[tuple[int, int, str]]] = {}
    for thread, start, length, name in sorted(_choose_longest(threads)):
        kept.setdefault(thread, []).append((start, length, name))
    return WindowEvents(zero_ns, length_ns, kept, beside)


def _choose_longest(threads: Threads) -> Iterable[tuple[str, int, int, str]]:
    def events() -> Iterable[tuple[str, int, int, str]]:
        for (device, number), (thread, found) in threads.items():
            where = f"{device} {thread or number}".strip()
            for start, end, name, _ in gently(found):
                if name != MARK:
                    yield where, start, end - start, name

    return heapq.nlargest(_MAX_EVENTS, events(), key=lambda event: event[2])
