"""Windows of TensorFlow's own profiler, taken now and then while the program steps.

A trace of the whole run would grow without bound. A window of a few steps every few seconds shows the same proportions
at a small, known cost. If the program uses the profiler itself, ours steps aside.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TypeVar

from stoker import clock
from stoker.doctor.probes.eager_ops import EagerOps
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.profiler_trace import WindowSummary, by_thread, summarise
from stoker.doctor.probes.recorder import STARTUP, TRACE, Recorder
from stoker.doctor.probes.spans import Window
from stoker.doctor.probes.steps import Steps
from stoker.doctor.probes.tensorflow_events import ClockMarks, WindowEvents, is_kept, window_events
from stoker.tf_internals import profiler
from stoker.tf_internals.types import ProfilerSession

T = TypeVar("T")
_MIN_WINDOW_S, _MAX_WINDOW_S = 0.04, 1.5
# As long as the length of a step is unknown. A shorter window would see only a piece of a long eager step.
_FIRST_WINDOW_S = 0.25
_TICKS_PER_WINDOW = 3
# The share of the run's time that windows and reading them may take.
_BUDGET = 0.01
_WINDOW_SLOWDOWN = 0.15
_MIN_PAUSE_S = 1.0
# A long run needs no more windows than this: the next one comes when the run has grown by this share.
_GROWTH = 0.05
# Until this many steps or eager ops have passed, what runs is warm-up.
_WARM_STEPS, _WARM_OPS = 3, 500
# The program may make a session now and start it a little later.
_GRACE_NS = 1_000_000_000
_FOREVER_NS = 1 << 63
_ASIDE = "the program uses TensorFlow's profiler itself: ours stepped aside"


class ProfilerWindows(Probe):
    """Takes windows from the heartbeat's thread, by `poll`."""

    name = "profiler windows"

    def __init__(self, recorder: Recorder, steps: Steps, eager: EagerOps) -> None:
        super().__init__(recorder)
        self.summary = WindowSummary()
        self.events: list[WindowEvents] = []
        self._steps = steps
        self._eager = eager
        self._lock = threading.RLock()
        self._session: ProfilerSession | None = None
        self._aside_until = 0
        self._next_ns = 0
        # Steps and eager ops at the last poll.
        self._seen = (0, 0)
        self._interrupted = threading.Event()

    def attach(self) -> None:
        self._new_session = getattr(*profiler.new_session())
        self._trace_me = profiler.trace_me()
        self._parse = profiler.trace_parser()
        self._quiet = log_silencer()
        self._is_profiling = profiler.is_profiling()
        self.replace(*profiler.new_session(), partial(self._step_aside, False))
        # A server may be asked for a trace at any time.
        self.replace(*profiler.start_server(), partial(self._step_aside, True))

    def poll(self) -> None:
        """Take a window if one is due and the program is stepping."""
        if self.recorder.meter is not None:
            # The profiler would see the emulation, not the modelled device.
            return
        now = clock.now_ns()
        seen = (self._steps.total(), self._eager.count)
        moved = seen[0] - self._seen[0] > 0 or seen[1] - self._seen[1] > 50
        self._seen = seen
        warm = seen[0] > _WARM_STEPS or seen[1] > _WARM_OPS
        if not self.active or self._must_wait() or not moved or not warm or now < self._next_ns:
            return
        if self.recorder.in_pause:
            return
        if self.recorder.top in (TRACE, STARTUP):
            return
        self.safely(self._take, self._window_s())

    def wants_turn(self) -> bool:
        """Whether a window is due."""
        wanted = self.active and self.recorder.meter is None and clock.now_ns() >= self._next_ns
        return wanted and not self._must_wait()

    def measure(self, ended: bool) -> WindowsPart:
        return WindowsPart(self.summary, list(self.events))

    def close(self) -> None:
        self.detach()
        self._interrupted.set()
        with self._lock:
            self._stop()

    def _window_s(self) -> float:
        tick_s = self._steps.tick_seconds()
        length = _TICKS_PER_WINDOW * tick_s if tick_s is not None else _FIRST_WINDOW_S
        return min(max(length, _MIN_WINDOW_S), _MAX_WINDOW_S)

    def _take(self, seconds: float) -> None:
        with self._lock:
            if not self.active or self._must_wait():
                return
            self._interrupted.clear()
            session = self._new_session()
            with self._quiet():
                session.start(tempfile.gettempdir(), {})
            self._session = session
        marks = ClockMarks(self._trace_me, clock.now_ns)
        beside = self._steps.windows.beside = Window(0, 0)
        started = clock.now_ns()
        self._interrupted.wait(seconds)
        opened = clock.now_ns() - started
        stopping = clock.now_ns()
        self._steps.windows.beside = None
        with self._lock:
            data = self._stop()
        if data is None:
            return
        cost = clock.now_ns() - stopping + int(opened * _WINDOW_SLOWDOWN)
        reading = time.thread_time_ns()
        threads = by_thread(self._parse(data))
        zero_ns = marks.zero_ns(threads)
        if zero_ns is not None and is_kept(self.summary.windows):
            self.events.append(window_events(threads, zero_ns, opened, beside))
        self.summary.add(summarise(threads, opened))
        cost += time.thread_time_ns() - reading
        now = clock.now_ns()
        age = int((now - self.recorder.start_ns) * _GROWTH)
        self._next_ns = now + max(int(cost / _BUDGET), int(_MIN_PAUSE_S * 1e9), age)

    def _stop(self) -> bytes | None:
        """End the open session; returns None if the program's own profiler has taken over."""
        session, self._session = self._session, None
        if session is None:
            return None
        with self._quiet():
            return bytes(session.stop())

    def _step_aside(self, for_good: bool, original: Callable[..., T]) -> Callable[..., T]:
        """Wrap what the program uses the profiler with: end our session first, and let the program have it."""

        def begin(*args: object, **kwds: object) -> T:
            with self._lock:
                self._aside_until = _FOREVER_NS if for_good else clock.now_ns() + _GRACE_NS
                self._interrupted.set()
                self._stop()
            self.recorder.note(_ASIDE)
            return original(*args, **kwds)

        return begin

    def _must_wait(self) -> bool:
        """Whether the program's own profiler is on, or about to be."""
        return self._is_profiling() or clock.now_ns() < self._aside_until


def log_silencer() -> Callable[[], AbstractContextManager[None]]:
    """A context manager in which TensorFlow's C++ side logs errors only.

    Starting a profiler session writes several lines to stderr that the program would not have written.
    """
    functions = profiler.log_level()
    if functions is None:
        return nullcontext
    get, set_level = functions
    errors_only = 2

    @contextmanager
    def silenced() -> Iterator[None]:
        level = get()
        set_level(max(level, errors_only))
        try:
            yield
        finally:
            set_level(level)

    return silenced
