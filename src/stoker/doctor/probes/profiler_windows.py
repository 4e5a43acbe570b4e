"""Windows of TensorFlow's own profiler, taken now and then while the program steps.

A trace of the whole run would grow without bound; a window of a few steps every few seconds shows the same
proportions for a known, small price. If the program uses the profiler itself, ours steps aside.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker import clock
from stoker.doctor.probes.eager_ops import EagerOps
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.profiler_trace import Summary, by_thread, summarise
from stoker.doctor.probes.recorder import STARTUP, TRACE, Recorder
from stoker.doctor.probes.spans import Window
from stoker.doctor.probes.steps import Steps
from stoker.doctor.probes.tensorflow_events import ClockMarks, WindowEvents, wanted, window_events
from stoker.tf_internals import profiler

_MIN_WINDOW_S, _MAX_WINDOW_S = 0.04, 1.5
# While nobody knows yet how long a step takes: a shorter one would see but a piece of a long eager step.
_FIRST_WINDOW_S = 0.25
_TICKS_PER_WINDOW = 3
# Of the run's time, at most this share may go into windows and reading them.
_BUDGET = 0.01
_WINDOW_SLOWDOWN = 0.15
_MIN_PAUSE_S = 1.0
# Until this many steps or eager ops have passed, what runs is warm-up.
_WARM_STEPS, _WARM_OPS = 3, 500
# Between the program's making a session and its starting it.
_GRACE_NS = 1_000_000_000
_FOREVER_NS = 1 << 63
_ASIDE = "the program uses TensorFlow's profiler itself: ours stepped aside"


class ProfilerWindows(Probe):
    """Takes windows from the heartbeat's thread, by `poll`."""

    name = "profiler windows"

    def __init__(self, recorder: Recorder, steps: Steps, eager: EagerOps) -> None:
        super().__init__(recorder)
        self.summary = Summary()
        # A few windows event by event, for a trace.
        self.events: list[WindowEvents] = []
        self._steps = steps
        self._eager = eager
        self._lock = threading.RLock()
        self._session: Any = None
        self._aside_until = 0
        self._next_ns = 0
        self._seen = (0, 0)
        self._interrupted = threading.Event()

    def attach(self) -> None:
        self._new_session = getattr(*profiler.new_session())
        self._trace_me = profiler.trace_me()
        self._parse = profiler.trace_parser()
        self._quiet = log_silencer()
        self._is_profiling = profiler.is_profiling()
        self.replace(*profiler.new_session(), self._step_aside)
        self.replace(*profiler.start_server(), self._step_aside_for_good)

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
        if self.recorder.top in (TRACE, STARTUP):
            return
        try:
            self._take(self._window_s())
        except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
            self.fail(error)

    def measure(self, ended: bool) -> WindowsPart:
        return WindowsPart(self.summary, list(self.events))

    def close(self) -> None:
        self.detach()
        self._interrupted.set()
        with self._lock:
            self._stop()

    def _window_s(self) -> float:
        tick_s = self._steps.tick_seconds()
        wanted = _TICKS_PER_WINDOW * tick_s if tick_s is not None else _FIRST_WINDOW_S
        return min(max(wanted, _MIN_WINDOW_S), _MAX_WINDOW_S)

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
        if zero_ns is not None and wanted(self.summary.windows):
            self.events.append(window_events(threads, zero_ns, opened, beside))
        self.summary.add(summarise(threads, opened))
        cost += time.thread_time_ns() - reading
        self._next_ns = clock.now_ns() + max(int(cost / _BUDGET), int(_MIN_PAUSE_S * 1e9))

    def _stop(self) -> bytes | None:
        """End the open session; None if the program's own profiler took over meanwhile."""
        session, self._session = self._session, None
        if session is None:
            return None
        with self._quiet():
            return bytes(session.stop())

    def _step_aside(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The program makes a session of its own: end ours first, and let it have the profiler."""

        def new_session(*args: Any, **kwds: Any) -> Any:
            with self._lock:
                self._aside_until = clock.now_ns() + _GRACE_NS
                self._interrupted.set()
                self._stop()
            self.recorder.note(_ASIDE)
            return original(*args, **kwds)

        return new_session

    def _step_aside_for_good(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A profiler server may be asked for a trace at any time."""

        def start_server(*args: Any, **kwds: Any) -> Any:
            with self._lock:
                self._aside_until = _FOREVER_NS
                self._interrupted.set()
                self._stop()
            self.recorder.note(_ASIDE)
            return original(*args, **kwds)

        return start_server

    def _must_wait(self) -> bool:
        """The program's own profiler is on, or about to be."""
        return self._is_profiling() or clock.now_ns() < self._aside_until


def log_silencer() -> Callable[[], Any]:
    """A context manager in which TensorFlow's C++ side logs errors only.

    Starting a profiler session writes several lines to stderr that the program would not have written.
    """
    functions = profiler.log_level()
    if functions is None:
        return _not_silenced
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


@contextmanager
def _not_silenced() -> Iterator[None]:
    yield
