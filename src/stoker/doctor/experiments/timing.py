"""Timing ways to do the same work in turn, round after round, within a budget."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stoker import clock
from stoker.processors import ProcessorUse, usable_cores

# A stretch shorter than this is mostly noise; a longer one shows nothing more.
_LEAST_STRETCH_S = 0.04
_MOST_CALLS = 200
# With at least this many calls, the usual one is known, whatever interrupted the others.
_MANY_CALLS = 10
# How much longer experiments may last than they work, as a factor.
_MOST_PATIENCE = 2
MOST_ROUNDS = 9
LEAST_ROUNDS = 3


class ExperimentBudget:
    """The time that experiments may take. All of it is spent at once if somebody asks to skip the rest.

    Time in which other programs have the processors does not count as spent, up to a limit.
    """

    def __init__(self, seconds: float, whole: ExperimentBudget | None = None) -> None:
        self._end = time.process_time_ns() + int(seconds * 1e9)
        self._latest = clock.real_ns() + int(seconds * _MOST_PATIENCE * 1e9)
        self._skipped: threading.Event = threading.Event() if whole is None else whole._skipped

    def skip(self) -> None:
        """Skip the experiments that are left."""
        self._skipped.set()

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        if self._skipped.is_set() or clock.real_ns() > self._latest:
            return 0.0
        return max(0.0, (self._end - time.process_time_ns()) / 1e9)


@dataclass(frozen=True)
class Way:
    """A way to do a step's work; `prepare` is called before each round and is not timed."""

    run: Callable[[], object]
    prepare: Callable[[], None] = field(default=lambda: None)


def time_in_turn(ways: Sequence[Way], budget: ExperimentBudget) -> list[list[float]]:
    """Return the seconds of a call of each way, one value a round; fewer than `LEAST_ROUNDS` if time ran out."""
    calls = []
    for way in ways:
        way.prepare()
        # The first call is not timed: it may trace, and optimise.
        way.run()
        once = _seconds(way.run, 1)
        calls.append(max(1, min(_MOST_CALLS, round(_LEAST_STRETCH_S / max(once, 1e-6)))))
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(MOST_ROUNDS):
        for way, count, seconds in zip(ways, calls, taken, strict=True):
            if not budget.left_s:
                return taken
            way.prepare()
            seconds.append(_seconds(way.run, count))
    return taken


def _seconds(run: Callable[[], object], count: int) -> float:
    """Return the seconds that a call would take on an otherwise idle machine."""
    times, now = [], clock.real_ns
    before = ProcessorUse.up_to_now()
    for _ in range(count):
        started = now()
        run()
        times.append(now() - started)
    elapsed = sum(times)
    stretch = ProcessorUse.up_to_now().since(before).stretch(elapsed, usable_cores())
    usual = elapsed / stretch / count
    if count >= _MANY_CALLS:
        # Other programs get the processor in slices longer than most of these calls, and seldom disturb all calls.
        usual = min(usual, statistics.quantiles(times, n=4)[0])
    return usual / 1e9
