"""When each op of a step began and ended, in steps that run at their own speed: whose time a step's time is.

A recorded step is slowed down by being recorded, but it tells whose each op is. A marked step is not slowed down, and
its ops come in the same order. Together they tell how much of a step belongs to a function or to a line.

This module is imported before the program starts, so it imports little and TensorFlow not at all.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from stoker import clock
from stoker.doctor.attach.patching import Patches
from stoker.doctor.probes.recorder import PYTHON, TRACE
from stoker.tf_internals import eager

T = TypeVar("T")
# After a recording so many steps are marked; and so many more each time the run has doubled in length.
_FIRST_MARKS, _MORE_MARKS, _DOUBLED_FROM = 8, 4, 64
MOST_MARKS = 32
# Fewer do not tell an op that lost its processor from one that takes long.
LEAST_MARKS = 4
# An op, with the Python before it, that took longer than this many times the usual, and so much more, was interrupted.
_INTERRUPTED, _INTERRUPTED_NS = 1.5, 20_000
# On a busy machine steps of compiled calls take up to so many times as long as the marked ones, though all are alike.
_BLOCKED = 2.0
# Python of a loop that takes longer is work by itself.
LONG_PYTHON_NS = 500_000


class MarkedStep(NamedTuple):
    """One step: its number, when it began and ended, and when each of its ops did. Nanoseconds."""

    tick: int
    start: int
    end: int
    began: list[int]
    ended: list[int]
    # Of the time before each op, what was the program's own Python.
    python: list[int]
    # For how long the main thread had been ready to run without a processor, up to the start.
    waited: int


class PartOfStep(NamedTuple):
    """Seconds of each marked step, without interruptions, and of some of its ops with the Python before them."""

    step_s: list[float]
    part_s: list[float]
    # Of all steps, marked or not, from the first marked one to the last, without waiting for a processor.
    mean_s: float


class Marking(Patches):
    """Marks the step that begins now."""

    def __init__(self, tick: int, totals: list[int]) -> None:
        super().__init__()
        self._tick = tick
        # The books: nanoseconds by account.
        self._totals = totals
        self._python: list[int] = []
        self._start = self._waited = 0
        self._traced = totals[TRACE]
        self._began: list[int] = []
        self._ended: list[int] = []

    def begin(self) -> None:
        """Start marking."""
        for place in (eager.op_dispatch(), eager.op_execution()):
            self.replace(*place, self._marked)
        self._python.append(self._totals[PYTHON])
        self._waited = main_thread_wait_ns()
        self._start = clock.real_ns()

    def end(self) -> MarkedStep | None:
        """Stop marking; the step, or None if something was traced in it: that is no time of its ops."""
        end = clock.real_ns()
        self.detach()
        if self._totals[TRACE] != self._traced:
            return None
        python = [after - before for before, after in itertools.pairwise(self._python)]
        return MarkedStep(self._tick, self._start, end, self._began, self._ended, python, self._waited)

    def _marked(self, original: Callable[..., T]) -> Callable[..., T]:
        now, note_start, note_end = clock.real_ns, self._began.append, self._ended.append
        totals, note_python = self._totals, self._python.append

        def run(*args: object) -> T:
            started = now()
            # An op that has to take the slower way raises here and is marked there.
            result = original(*args)
            note_end(now())
            note_start(started)
            note_python(totals[PYTHON])
            return result

        return run


def is_marked_tick(tick: int, recorded_at: int) -> bool:
    """Whether the step after this tick is marked, if the last recording ended at tick `recorded_at`."""
    if tick - recorded_at < _FIRST_MARKS:
        return True
    return tick >= _DOUBLED_FROM and tick - (1 << (tick.bit_length() - 1)) < _MORE_MARKS


class OwnOps(NamedTuple):
    """Ops of a step that a repair replaces, by their places."""

    places: frozenset[int]
    # Ops that wait for the input: only the Python before them goes.
    waits: frozenset[int] = frozenset()
    # Whether long Python between these ops, too, is the program's own work, which stays.
    apart: bool = False

    def python_that_stays(self, place: int, python: float) -> float:
        """Of the program's own Python before the op at a place, what stays."""
        if self.apart:
            # The loop goes with its calls, but not what is work by itself.
            return python if python > LONG_PYTHON_NS else 0.0
        return 0.0 if place - 1 in self.places | self.waits else python


NO_OPS = OwnOps(frozenset())


def part_of(marks: Sequence[MarkedStep], ops: int, own: OwnOps) -> PartOfStep | None:
    """What some of a step's ops take, with the Python before them; None if too few steps have so many `ops`.

    The program's own Python does not count, unless it is between two of them. What comes after the last op is of that
    op: the end of the update ends a step.
    """
    alike = [mark for mark in marks if len(mark.ended) == ops]
    if len(alike) < LEAST_MARKS or not own.places:
        return None
    gaps = _without_interruptions([_gaps(mark) for mark in alike])
    runs = _without_interruptions([_runs(mark) for mark in alike])
    pythons = _without_interruptions([mark.python for mark in alike])
    for place in own.waits:
        # Whoever waits has to wait for a processor, too, when it gets what it waited for.
        quickest = min(run[place] for run in runs)
        for run in runs:
            run[place] = quickest
    steps, parts = [], []
    for gap, run, python in zip(gaps, runs, pythons, strict=True):
        steps.append((sum(gap) + sum(run)) / 1e9)
        part = sum(run[place] for place in own.places) + (gap[ops] if ops - 1 in own.places else 0.0)
        for place in own.places | own.waits:
            part += max(0.0, gap[place] - own.python_that_stays(place, python[place]))
        parts.append(part / 1e9)
    mean_s = _mean_s(marks)
    if own.apart and mean_s < _BLOCKED * statistics.median(steps):
        # A compiled call blocks this thread while others of the process wait for a processor.
        mean_s = 0.0
    return PartOfStep(steps, parts, mean_s)


def _gaps(mark: MarkedStep) -> list[int]:
    """From the end of each op to the beginning of the next, and from the last to the step's end."""
    ends, starts = [mark.start, *mark.ended], [*mark.began, mark.end]
    return [start - end for end, start in zip(ends, starts, strict=True)]


def _runs(mark: MarkedStep) -> list[int]:
    return [end - start for start, end in zip(mark.began, mark.ended, strict=True)]


def _without_interruptions(rows: Sequence[Sequence[int]]) -> list[list[float]]:
    """The steps' times, with those cut that are far beyond what is usual at their place."""
    limits = []
    for column in zip(*rows, strict=True):
        usual = statistics.median_low(column)
        limits.append(max(usual * _INTERRUPTED, usual + _INTERRUPTED_NS))
    return [[min(value, limit) for value, limit in zip(row, limits, strict=True)] for row in rows]


def _mean_s(marks: Sequence[MarkedStep]) -> float:
    """Seconds of a step from the first marked one to the last, without waiting for a processor."""
    first, last = marks[0], marks[-1]
    steps = last.tick - first.tick
    return (last.start - first.start - (last.waited - first.waited)) / steps / 1e9 if steps > 0 else 0.0


def main_thread_wait_ns() -> int:
    """For how long this thread has been ready to run without a processor; 0 where the system does not tell."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
    except OSError:
        return 0
