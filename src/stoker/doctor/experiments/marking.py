"""Mark when each op begins and ends in steps that run at their own speed, and so see which ops take the time.

Recording slows a step down, but shows who each op belongs to. Marking does not slow a step down, and the ops come in
the same order. Together they show how much of a step belongs to a function or to a line.

This module is imported before the program starts, so it imports little, and never TensorFlow.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from stoker import clock
from stoker.doctor.attach.patching import Patches
from stoker.doctor.probes.recorder import PYTHON, TRACE
from stoker.tf_internals import eager

T = TypeVar("T")
# How many steps are marked after a recording, and how many more, from this tick on, each time the run has doubled.
_FIRST_MARKS, _MORE_MARKS, _DOUBLED_FROM = 8, 4, 64
MOST_MARKS = 32
# With fewer marks, an op that lost its processor cannot be told from one that takes long.
LEAST_MARKS = 4
# An op, with the Python before it, was interrupted if it took this many times the usual, and this much longer.
_INTERRUPTED, _INTERRUPTED_NS = 1.5, 20_000
# Python in a loop that takes longer is work of its own.
LONG_PYTHON_NS = 500_000


class MarkedStep(NamedTuple):
    """A step: its number, when it began and ended, and when each of its ops did, in nanoseconds."""

    tick: int
    start: int
    end: int
    began: list[int]
    ended: list[int]
    # The program's own Python, in the time before each op.
    python: list[int]
    # By place: the processor time of all threads during ops that may wait for other threads of the program; and that of
    # the main thread during the Python before some ops.
    cpu: dict[int, int]
    python_cpu: dict[int, int]
    # By place: the main thread's processor time before the first op, and after the last one.
    edges_cpu: dict[int, int] = {}  # noqa: RUF012 - never changed

    def long_gaps(self) -> frozenset[int]:
        """Return the places of ops with so much Python before them that it was probably interrupted."""
        return frozenset(place for place, ns in enumerate(_gaps(self)[:-1]) if ns > LONG_PYTHON_NS)

    def long_runs(self) -> frozenset[int]:
        """Return the places of ops that took so long that they were probably interrupted, or waited."""
        return frozenset(place for place, ns in enumerate(_runs(self)) if ns > LONG_PYTHON_NS)


class PartOfStep(NamedTuple):
    """Seconds of each marked step, without interruptions, and of some of its ops with the Python before them."""

    step_s: list[float]
    part_s: list[float]


class Marking(Patches):
    """Marks the step that begins now."""

    def __init__(self, tick: int, totals: list[int], before: MarkedStep | None = None) -> None:
        super().__init__()
        # What took long in the previously marked step.
        self._long_gaps = before.long_gaps() if before is not None else frozenset[int]()
        self._long_runs = before.long_runs() if before is not None else frozenset[int]()
        self._timed_gaps = self._long_gaps | ({len(before.ended)} if before is not None else frozenset())
        self._cpu_since: dict[int, int] = {}
        self._python_cpu: dict[int, int] = {}
        self._tick = tick
        # The recorder's totals: nanoseconds by account.
        self._totals = totals
        self._python: list[int] = []
        self._start = 0
        self._cpu: dict[int, int] = {}
        self._traced = totals[TRACE]
        self._began: list[int] = []
        self._ended: list[int] = []

    def begin(self) -> None:
        """Start marking."""
        self.replace(*eager.op_dispatch(), self._marked_where_long)
        # Compiled calls come this way. They end when other threads are done.
        self.replace(*eager.op_execution(), lambda original: self._with_cpu(self._marked(original)))
        self._python.append(self._totals[PYTHON])
        self._cpu_since[0] = time.thread_time_ns()
        self._start = clock.real_ns()

    def end(self) -> MarkedStep | None:
        """Stop marking. Return the step, or None if something was traced in it: tracing is not the ops' own time."""
        end = clock.real_ns()
        self.detach()
        if self._totals[TRACE] != self._traced:
            return None
        last = len(self._ended)
        if last in self._cpu_since:
            self._python_cpu[last] = time.thread_time_ns() - self._cpu_since.pop(last)
        edges = {place: ns for place, ns in self._python_cpu.items() if place in (0, last)}
        for place in edges.keys() - self._long_gaps:
            del self._python_cpu[place]
        python = [after - before for before, after in itertools.pairwise(self._python)]
        return MarkedStep(
            self._tick, self._start, end, self._began, self._ended, python, self._cpu, self._python_cpu, edges
        )

    def _marked(self, original: Callable[..., T]) -> Callable[..., T]:
        now, note_start, note_end = clock.real_ns, self._began.append, self._ended.append
        totals, note_python = self._totals, self._python.append
        ended, timed_gaps, used = self._ended, self._timed_gaps, time.thread_time_ns
        since, cpu = self._cpu_since, self._python_cpu

        def run(*args: object) -> T:
            started, place = now(), len(ended)
            if place in since:
                cpu[place] = used() - since.pop(place)
            # An op that has to take the slower way raises an error here, and is marked there.
            result = original(*args)
            note_end(now())
            note_start(started)
            note_python(totals[PYTHON])
            if place + 1 in timed_gaps:
                since[place + 1] = used()
            return result

        return run

    def _marked_where_long(self, original: Callable[..., T]) -> Callable[..., T]:
        """Mark ops. Also count the processor time of ops that took long in the last step, such as waits for input."""
        marked, ended, long_runs = self._marked(original), self._ended, self._long_runs
        if not long_runs:
            return marked
        counted = self._with_cpu(marked)
        return lambda *args: (counted if len(ended) in long_runs else marked)(*args)

    def _with_cpu(self, marked: Callable[..., T]) -> Callable[..., T]:
        used, ended, cpu = time.process_time_ns, self._ended, self._cpu

        def run(*args: object) -> T:
            before = used()
            result = marked(*args)
            cpu[len(ended) - 1] = used() - before
            return result

        return run


def is_marked_tick(tick: int, recorded_at: int) -> bool:
    """Return whether to mark the step after this tick, if the last recording ended at tick `recorded_at`."""
    if tick - recorded_at < _FIRST_MARKS:
        return True
    return tick >= _DOUBLED_FROM and tick - (1 << (tick.bit_length() - 1)) < _MORE_MARKS


class OwnOps(NamedTuple):
    """The ops of a step that a repair replaces, by their places."""

    places: frozenset[int] = frozenset()
    # Ops that stay, though all Python before them goes away.
    gaps: frozenset[int] = frozenset()
    # Ops that wait for the input: only the Python before them goes away.
    waits: frozenset[int] = frozenset()
    # Whether the ops are the call of a step of Keras' `fit`. The Python around the call is Keras' loop, which stays.
    in_fit: bool = False
    # Whether long Python between these ops is the program's own work, too, and so stays.
    apart: bool = False

    def python_that_stays(self, place: int, python: float) -> float:
        """Return how much of the Python before the op at a place stays."""
        if self.in_fit and place in self.waits:
            return math.inf
        if self.apart:
            # The loop goes away with its calls, except for work of its own.
            return python if python > LONG_PYTHON_NS else 0.0
        return 0.0 if place - 1 in self.places | self.waits else python


NO_OPS = OwnOps()


def part_of(marks: Sequence[MarkedStep], ops: int, own: OwnOps) -> PartOfStep | None:
    """Return the time of some of a step's ops with the Python before them; None if too few steps have this many `ops`.

    The program's own Python does not count, except between two of these ops. The time after the last op of the step
    counts for that op: the end of the update ends a step.
    """
    alike = [mark for mark in marks if len(mark.ended) == ops]
    if len(alike) < LEAST_MARKS or not own.places | own.gaps:
        return None
    # Prefer steps whose long Python was counted in processor time, which holds no interruptions.
    counted = [mark for mark in alike if mark.python_cpu]
    if len(counted) >= LEAST_MARKS:
        alike = counted
    always = frozenset.intersection(*(frozenset(mark.python_cpu) for mark in alike))
    gaps = _without_interruptions([_gaps(mark, own.in_fit) for mark in alike], always)
    runs = _without_interruptions([_runs(mark) for mark in alike])
    pythons = _without_interruptions([mark.python for mark in alike])
    for place in own.waits:
        # After its wait, a thread may also have to wait for a processor.
        quickest = min(run[place] for run in runs)
        for run in runs:
            run[place] = quickest
    steps, parts = [], []
    for gap, run, python in zip(gaps, runs, pythons, strict=True):
        steps.append((sum(gap) + sum(run)) / 1e9)
        part = sum(run[place] for place in own.places) + (gap[ops] if ops - 1 in own.places else 0.0)
        for place in own.places | own.waits:
            part += max(0.0, gap[place] - own.python_that_stays(place, python[place]))
        part += sum(gap[place] for place in own.gaps - own.places)
        parts.append(part / 1e9)
    return PartOfStep(steps, parts)


def _gaps(mark: MarkedStep, in_fit: bool = False) -> list[int]:
    """Return the times from the end of each op to the beginning of the next, and from the last op to the step's end.

    The time before and after a call of `fit` is short, and stays: an interruption would be most of it.
    """
    ends, starts = [mark.start, *mark.ended], [*mark.began, mark.end]
    times = [start - end for end, start in zip(ends, starts, strict=True)]
    counted = {**mark.edges_cpu, **mark.python_cpu} if in_fit else mark.python_cpu
    return [min(ns, counted.get(place, ns)) for place, ns in enumerate(times)]


def _runs(mark: MarkedStep) -> list[int]:
    """Return the time of each op. Other threads' work counts, because those threads may have waited for a processor."""
    times = [end - start for start, end in zip(mark.began, mark.ended, strict=True)]
    return [min(ns, mark.cpu.get(place, ns)) for place, ns in enumerate(times)]


def _without_interruptions(rows: Sequence[Sequence[int]], counted: Collection[int] = ()) -> list[list[float]]:
    """Return the steps' times, limited to what is usual at their place.

    Processor time, which is `counted` at some places, is the program's own, however rare, such as the garbage
    collector's. It has no limit.
    """
    limits = []
    for place, column in enumerate(zip(*rows, strict=True)):
        usual = statistics.median_low(column)
        limits.append(math.inf if place in counted else max(usual * _INTERRUPTED, usual + _INTERRUPTED_NS))
    return [[min(value, limit) for value, limit in zip(row, limits, strict=True)] for row in rows]
