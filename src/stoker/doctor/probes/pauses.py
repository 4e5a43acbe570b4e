"""Pauses in measuring: a program with short steps is measured for a while; then only its steps are counted.

Looking at every call and every op of a step of one millisecond takes 50 microseconds, so not every step is measured. A
stretch of a few hundred milliseconds is measured in full. Then comes a pause, until the run has grown by a tenth. Most
patches are out during the pause. Those that stay count the steps, time whatever takes long, and notice what is new.

A pause is estimated from the last stretches (stretches.py). Steps, traces, checkpoints, iterators' beginnings and ends,
and any wait for input or callback that takes longer than several steps are always measured. Measuring resumes early if
steps fail to come, or if a function is called that no stretch has seen.

A program whose steps take long, or whose steps are not understood, is measured without pauses.
"""

from __future__ import annotations

import math
import os
import statistics
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from stoker import clock
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import DISPATCH, HEAVY_NS, PYTHON, Recorder
from stoker.doctor.probes.steps import LAYERS, StepCount, Steps
from stoker.doctor.probes.stretches import Estimate, MeasuredStretch, Reader

# The length of the first stretch, the length of later ones, and the least number of steps in one.
_FIRST_NS, _STRETCH_NS, _STRETCH_TICKS = 400_000_000, 200_000_000, 12
# The first steps of a source are never in a pause, because some of them are recorded for experiments.
_EARLY_TICKS = 48
# A pause ends when the run has grown by this share, but lasts at least this long, and as long as this many stretches.
_GROWTH, _PAUSE_NS, _PAUSE_STRETCHES = 0.1, 1_800_000_000, 9
# An estimate uses this many of the last stretches, as long as their steps differ by no more than this share.
_KEPT, _SAME = 4, 0.3
# A step this many times as long as usual contains something rare.
_HEAVY_STEPS = 4
# Roughly what the probes take for a step and for an op. If that is below this share of the time, there are no pauses.
_TICK_COST_NS, _OP_COST_NS, _WORTH = 50_000, 1_500, 0.01
# Steps longer than this are measured without pauses.
_LONG_STEP_NS = 250_000_000
# The wait, in time after a stretch that led to no pause, and in steps after a source that is not reported.
_RETRY_NS, _RETRY_TICKS = 1_000_000_000, 17
# If steps take up less than this share of the time in a pause, the program does something else.
_STALLED = 0.25
_MOST_TIMES = 64
# The events of a pause are put on the books when at least this many steps have passed.
_POLLED_STEPS = 4


class Pauses(Probe):
    """Decides when measuring pauses, and puts what happens in a pause on the books."""

    name = "pauses"

    def __init__(self, recorder: Recorder, steps: Steps, probes: Iterable[Probe]) -> None:
        super().__init__(recorder)
        self._steps = steps
        self._probes = tuple(probes)
        # Returns how to read the event that makes the steps of a source; None if nothing counts that event.
        self.reader_of: Callable[[StepCount], Reader | None] = lambda count: None
        # Reads the number of eager ops so far.
        self.ops: Reader = int
        # Whether measuring must go on.
        self.is_held: Callable[[], bool] = lambda: False
        self._stretch: MeasuredStretch | None = None
        self._kept: list[MeasuredStretch] = []
        # The time of a step in each of the stretches.
        self._step_times: deque[float] = deque(maxlen=_MOST_TIMES)
        self._estimate: Estimate | None = None
        self._not_before = self._skipped_ticks = 0
        self._until = self._extended_ns = 0

    def enable(self) -> None:
        """Pause from now on whenever that is worthwhile."""
        self._steps.on_tick = lambda count, now: self.call_safely(self._step_ended, count, now)
        self.recorder.on_wake = self.end_pause
        # A forked child has no heartbeat thread, though that thread may hold the lock when the parent forks.
        os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self.recorder.lock = threading.RLock()

    def fail(self, error: BaseException) -> None:
        self._steps.on_tick = None
        # The next event ends the pause, if there is one. No other pause follows.
        self.recorder.is_due = True
        super().fail(error)

    def _step_ended(self, count: StepCount, now: int) -> None:
        """Begin a stretch at the end of a step, continue it, or end it."""
        stretch = self._stretch
        if stretch is None:
            if self._estimate is None and now >= self._not_before:
                self._begin(count, now)
            return
        if count is not stretch.anchor:
            return
        windows = self._steps.windows
        heavy = now - stretch.last_ns > self.recorder.heavy_ns
        if heavy or windows.open is not None or windows.beside is not None:
            self._stretch = None
            return
        stretch.last_ns = now
        least_ns = _STRETCH_NS if self._kept else _FIRST_NS
        if (
            now - stretch.start_ns >= least_ns
            and count.ticks >= _EARLY_TICKS
            and stretch.ticks_so_far() >= _STRETCH_TICKS
        ):
            self._stretch = None
            self._end(stretch, now)

    def _begin(self, count: StepCount, now: int) -> None:
        if self._skipped_ticks:
            self._skipped_ticks -= 1
            return
        if count.rank >= LAYERS or count.ticks < 2 or not self._is_at_the_bottom() or self.is_held():
            return
        if not any(one is count for one in self._steps.reported()):
            self._skipped_ticks = _RETRY_TICKS
            return
        usual = (count.last_ns - count.first_ns) // (count.ticks - 1)
        self.recorder.heavy_ns = max(HEAVY_NS, _HEAVY_STEPS * usual)
        self._stretch = MeasuredStretch(count, now, self.recorder, self.ops())
        self._stretch.begin(self._probes, list(self._steps.sources.values()), self.reader_of)

    def _is_at_the_bottom(self) -> bool:
        """Return whether the main thread is in a loop of the user's or Keras', and in nothing else that is timed."""
        recorder = self.recorder
        if self._steps.keras_depth:
            return self._steps.keras_depth == 1 and recorder.depth == 1 and recorder.top == DISPATCH
        return recorder.depth == 0 and recorder.top == PYTHON

    def _end(self, stretch: MeasuredStretch, now: int) -> None:
        """End a stretch, and pause if that is worthwhile and the steps are understood."""
        stretch.end(self._probes, self.recorder, self.ops())
        cost = stretch.ticks * _TICK_COST_NS + stretch.ops * _OP_COST_NS
        drivers = stretch.find_drivers(self.reader_of)
        if drivers is None or cost < _WORTH * stretch.ns or stretch.step_ns > _LONG_STEP_NS:
            self._not_before = now + _RETRY_NS
            return
        if stretch.is_disturbed() or not self._is_at_the_bottom() or self.is_held():
            return
        if self._kept and not self._kept[-1].resembles(stretch, _SAME):
            self._kept.clear()
        self._kept = [*self._kept[1 - _KEPT :], stretch]
        self._step_times.append(stretch.step_ns)
        self.recorder.estimate_error = _standard_error(self._step_times)
        with self.recorder.lock:
            self._estimate = Estimate(self._kept, drivers, self.recorder.top)
            self._extended_ns = self.recorder.pause()
            for probe in reversed(self._probes):
                probe.pause()
        stretches_ns = _PAUSE_STRETCHES * max(_STRETCH_NS, int(_STRETCH_TICKS * stretch.step_ns))
        age = now - stretch.anchor.first_ns
        self._until = now + max(_PAUSE_NS, stretches_ns, int(_GROWTH * age))

    def end_pause(self) -> None:
        """End the pause, if there is one. Called on the main thread."""
        with self.recorder.lock:
            estimate = self._estimate
            if estimate is None:
                return
            self.call_safely(self._extend, estimate)
            self._estimate = None
            self.recorder.resume(estimate.base)
            for probe in self._probes:
                probe.resume()
            for count in self._steps.sources.values():
                count.skip_time()

    def poll(self) -> None:
        """Keep the books of a pause up to date, and let the next event end the pause when it is time."""
        with self.recorder.lock:
            estimate = self._estimate
            if estimate is None or clock.now_ns() - self._extended_ns < _POLLED_STEPS * estimate.step_ns:
                return
            if self.call_safely(self._extend, estimate):
                self.recorder.is_due = True
                # Any next event ends the pause, not only the next step.
                for probe in self._probes:
                    probe.resume()
            elif self._extended_ns >= self._until:
                self.recorder.is_due = True

    def bring_up_to_date(self, ended: bool) -> None:
        """Put the pause so far on the books. Safe to call from another thread."""
        with self.recorder.lock:
            if self._estimate is not None:
                self.call_safely(self._extend, self._estimate, ended)

    def _extend(self, estimate: Estimate, ended: bool = False) -> bool:
        """Account for the pause up to now. Return whether the program has stopped stepping."""
        recorder = self.recorder
        elapsed, now = recorder.read_unaccounted()
        ticks, counts = estimate.count_steps(recorder)
        stepping = int(ticks * estimate.step_ns)
        stalled = stepping < _STALLED * elapsed
        part = min(elapsed, stepping) if stalled or ended else elapsed
        estimate.share_out(part, ticks, recorder.spread)
        last_ns = now - (elapsed - part)
        for count in counts:
            count.skip_to(last_ns, recorder.read_balances()[0])
        recorder.spread[estimate.base] += elapsed - part
        recorder.estimated_ns += part
        self._extended_ns = now
        return stalled


def _standard_error(times: Sequence[float]) -> float:
    """Return the standard error of the mean, as a share of the mean."""
    if len(times) < 2:
        return 0.0
    return statistics.stdev(times) / math.sqrt(len(times)) / statistics.mean(times)
