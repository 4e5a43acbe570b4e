"""Timing two ways to do the same in turn, round after round, within a budget."""

from __future__ import annotations

import glob
import statistics
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from stoker import clock
from stoker.doctor.probes.parts.steps import usable_cores

# A stretch shorter than this is mostly noise; one longer than that learns nothing more.
_LEAST_STRETCH_S = 0.04
_MOST_CALLS = 200
# Of so many calls the usual one is known, whatever interrupted the others.
_MANY_CALLS = 10
MOST_ROUNDS = 9
LEAST_ROUNDS = 3


class Budget:
    """The time experiments may take; spent at once when somebody asks to skip the rest."""

    def __init__(self, seconds: float, whole: Budget | None = None) -> None:
        self._end = clock.real_ns() + int(seconds * 1e9)
        self._skipped: threading.Event = threading.Event() if whole is None else whole._skipped

    def skip(self) -> None:
        """Skip the experiments that are left."""
        self._skipped.set()

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return 0.0 if self._skipped.is_set() else max(0.0, (self._end - clock.real_ns()) / 1e9)


@dataclass(frozen=True)
class Way:
    """A way to do a step's work; `prepare` is called before each round and not timed."""

    run: Callable[[], object]
    prepare: Callable[[], None] = field(default=lambda: None)


def time_in_turn(ways: Sequence[Way], budget: Budget) -> list[list[float]]:
    """Seconds of a call of each way, a value a round; fewer than `LEAST_ROUNDS` values if the time was over."""
    calls = []
    for way in ways:
        way.prepare()
        # Twice: the first call may trace, and optimise.
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
    """Seconds of a call on a machine that does nothing else."""
    times, now = [], clock.real_ns
    before = _scheduled()
    for _ in range(count):
        started = now()
        run()
        times.append(now() - started)
    if count >= _MANY_CALLS:
        # Other programs get the processor in slices longer than most of these calls, and disturb less than half.
        return statistics.quantiles(times, n=4)[0] / 1e9
    elapsed, after = sum(times), _scheduled()
    stretch = _stretch(elapsed, after.ran_ns - before.ran_ns, after.waited_ns - before.waited_ns)
    return elapsed / stretch / count / 1e9


def _stretch(elapsed: int, ran: int, waited: int) -> float:
    """How many times as long it took because other programs had the processors.

    Threads also wait for processors that others of this process have: other programs can have had no more than is left.
    """
    left_over = max(0, usable_cores() * elapsed - ran)
    return 1.0 + min(waited, left_over) / ran if ran > 0 else 1.0


class _Scheduled(NamedTuple):
    """Nanoseconds that the threads of this process were on a processor, and waited for one."""

    ran_ns: int
    waited_ns: int


def _scheduled() -> _Scheduled:
    """Up to now; nothing where the system does not tell."""
    ran = waited = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            words = Path(path).read_text(encoding="ascii").split()
        except OSError:
            # The thread has just ended.
            continue
        ran, waited = ran + int(words[0]), waited + int(words[1])
    return _Scheduled(ran, waited)
