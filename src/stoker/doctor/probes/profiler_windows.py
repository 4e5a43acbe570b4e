"""Windows of TensorFlow's own profiler, taken now and then while the program steps.

A trace of the whole run would grow without bound. A window of a few steps every few seconds shows the same proportions
at a small, known cost. If the program uses the profiler itself, Stoker's sessions step aside.

A worker that exchanges with others has no windows: they could crash it. `exchange_meter` says why.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from stoker import clock
from stoker.doctor.probes.eager_ops import EagerOps
from stoker.doctor.probes.exchange_meter import ExchangeMeter
from stoker.doctor.probes.memory_book import MemoryBookProbe
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.profiler_trace import WindowSummary, group_by_thread, summarise
from stoker.doctor.probes.recorder import STARTUP, TRACE, Recorder
from stoker.doctor.probes.spans import Window
from stoker.doctor.probes.steps import Steps
from stoker.doctor.probes.tensorflow_events import ClockMarks, WindowEvents, is_kept, window_events
from stoker.tf_internals import distribution, profiler
from stoker.tf_internals.types import ProfilerSession

T = TypeVar("T")
_MIN_WINDOW_S, _MAX_WINDOW_S = 0.04, 1.5
# The window's length while a step's is unknown. A shorter window would see only a piece of a long eager step.
_FIRST_WINDOW_S = 0.25
_TICKS_PER_WINDOW = 3
# A pipeline of single rows makes hundreds of thousands of events a second, and reading one takes 5 us. A window that
# may have more than this many ends once it has seen a whole step, which lies between two ends of a step.
_MAX_EVENTS, _ENDS_OF_A_STEP = 40_000, 2
# A window this short never has too many events. How often a longer window is checked.
_SHORT_S, _LOOK_S = 0.15, 0.01
# The share of the run's time that windows and reading them may take.
_BUDGET = 0.01
_WINDOW_SLOWDOWN = 0.15
_MIN_PAUSE_S = 1.0
# A long run needs no more windows than this: the next window comes when the run has grown by this share.
_GROWTH = 0.05
# Until this many steps or eager ops have passed, the program is warming up.
_WARM_STEPS, _WARM_OPS = 3, 500
# The program may make a session now and start the session a little later.
_GRACE_NS = 1_000_000_000
_FOREVER_NS = 1 << 63
_ASIDE = "the program uses TensorFlow's profiler, so Stoker's profiler windows are off"


class ProfilerWindows(Probe):
    """Takes windows from the heartbeat's thread, by `poll`."""

    name = "profiler windows"

    def __init__(
        self,
        recorder: Recorder,
        steps: Steps,
        eager: EagerOps,
        memory: MemoryBookProbe,
        exchanges: ExchangeMeter,
    ) -> None:
        super().__init__(recorder)
        self._memory, self._exchanges = memory, exchanges
        self.summary = WindowSummary()
        self.events: list[WindowEvents] = []
        self._steps = steps
        self._eager = eager
        self._lock = threading.RLock()
        self._session: ProfilerSession | None = None
        self._aside_until = 0
        self._next_ns = 0
        # The last window's; None before the first.
        self._events_per_s: float | None = None
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
        self.replace(*distribution.joining(), self._end_before)

    def poll(self) -> None:
        """Take a window if one is due and the program is stepping."""
        # A GPU's work takes no processor time, so the meter would mistake it for waiting.
        if not self._exchanges.on and not self._memory.has_device:
            self._exchanges.on = distribution.has_peers()
        if self.recorder.meter is not None and not self._memory.has_device:
            # The profiler would see the emulation, not the modelled device. Only allocations are real.
            return
        if self.active and self._memory.wants_first() and not self._must_wait():
            self.call_safely(self._take_memory)
            # The first step's window does not count towards the budget: the following windows come as they would have.
            self._next_ns = 0
            return
        now = clock.real_ns()
        seen = (self._steps.total(), self._eager.count)
        moved = seen[0] - self._seen[0] > 0 or seen[1] - self._seen[1] > 50
        self._seen = seen
        warm = seen[0] > _WARM_STEPS or seen[1] > _WARM_OPS
        due = now >= self._next_ns or self._memory.is_urgent()
        if not self.active or self._must_wait() or not moved or not warm or not due:
            return
        if self.recorder.in_pause:
            return
        if self.recorder.top in (TRACE, STARTUP):
            return
        if self._is_for_memory():
            self.call_safely(self._take_memory)
        else:
            self.call_safely(self._take, self._window_s())

    def wants_turn(self) -> bool:
        """Return whether a window is due."""
        wanted = self.active and self.recorder.meter is None and clock.real_ns() >= self._next_ns
        return wanted and not self._must_wait()

    def interrupt(self) -> None:
        """End an open window now, and keep what it has seen."""
        self._interrupted.set()

    def measure(self, ended: bool) -> WindowsPart:
        return WindowsPart(self._exchanges.summary() or self.summary, list(self.events))

    def close(self) -> None:
        self.detach()
        self._interrupted.set()
        with self._lock:
            self._stop()

    def _is_for_memory(self) -> bool:
        """Return whether the next window shows allocations: always on the software GPU, every other time on a GPU."""
        if not self._memory.has_device:
            return False
        emulated = self.recorder.meter is not None
        return emulated or self._memory.is_urgent() or self._memory.windows < self.summary.windows

    def _take_memory(self) -> None:
        """Take a window of allocations, which counts towards the budget like any other."""
        started, reading = clock.real_ns(), time.thread_time_ns()
        open_ns = 0

        def record(wait: Callable[[threading.Event], None]) -> bytes | None:
            nonlocal open_ns
            with tempfile.TemporaryDirectory(prefix="stoker-memory-") as folder:
                if not self._open(folder):
                    return None
                beside = self._steps.windows.beside = Window(0, 0)
                opened = clock.real_ns()
                wait(self._interrupted)
                open_ns = clock.real_ns() - opened
                if self._steps.windows.beside is beside:
                    self._steps.windows.beside = None
                with self._lock:
                    if not self._export():
                        return None
                # The file does not exist if nothing was seen.
                file = next(Path(folder).rglob("*.xplane.pb"), None)
                return None if file is None else file.read_bytes()

        self._memory.take(record)
        cost = clock.real_ns() - started - open_ns + int(open_ns * _WINDOW_SLOWDOWN)
        self._postpone_next(min(cost, time.thread_time_ns() - reading + int(open_ns * _WINDOW_SLOWDOWN)))

    def _window_s(self) -> float:
        tick_s = self._steps.tick_seconds()
        length = _TICKS_PER_WINDOW * tick_s if tick_s is not None else _FIRST_WINDOW_S
        return min(max(length, _MIN_WINDOW_S), _MAX_WINDOW_S)

    def _open(self, folder: str) -> bool:
        """Open a session, unless the program's own profiler is on."""
        with self._lock:
            if not self.active or self._must_wait():
                return False
            self._interrupted.clear()
            session = self._new_session()
            with self._quiet():
                session.start(folder, {})
            self._session = session
        return True

    def _take(self, seconds: float) -> None:
        if not self._open(tempfile.gettempdir()):
            return
        marks = ClockMarks(self._trace_me, clock.now_ns)
        beside = self._steps.windows.beside = Window(0, 0)
        started = clock.now_ns()
        self._wait(seconds)
        opened = clock.now_ns() - started
        stopping = clock.now_ns()
        self._steps.windows.beside = None
        with self._lock:
            data = self._stop()
        if data is None:
            return
        cost = clock.now_ns() - stopping + int(opened * _WINDOW_SLOWDOWN)
        reading = time.thread_time_ns()
        trace = self._parse(data)
        self._events_per_s = len(trace.trace_events) / (opened / 1e9)
        threads = group_by_thread(trace)
        zero_ns = marks.zero_ns(threads)
        if zero_ns is not None and is_kept(self.summary.windows):
            self.events.append(window_events(threads, zero_ns, opened, beside))
        self.summary.add(summarise(threads, opened))
        cost += time.thread_time_ns() - reading
        self._postpone_next(cost)

    def _postpone_next(self, cost_ns: int) -> None:
        """Postpone the next window according to the cost of this one and the age of the run."""
        now = clock.real_ns()
        age = int((clock.now_ns() - self.recorder.start_ns) * _GROWTH)
        self._next_ns = now + max(int(cost_ns / _BUDGET), int(_MIN_PAUSE_S * 1e9), age)

    def _wait(self, seconds: float) -> None:
        """Keep the window open this long, or only for a whole step if there may be too many events."""
        few = self._events_per_s is not None and self._events_per_s * seconds <= _MAX_EVENTS
        if few or seconds <= _SHORT_S:
            self._interrupted.wait(seconds)
            return
        first = self._steps.ticks()
        end_ns = clock.now_ns() + int(seconds * 1e9)
        while clock.now_ns() < end_ns and self._steps.ticks() - first < _ENDS_OF_A_STEP:
            if self._interrupted.wait(_LOOK_S):
                return

    def _stop(self) -> bytes | None:
        """End the open session. Return None if the program's own profiler has taken over."""
        session, self._session = self._session, None
        if session is None:
            return None
        with self._quiet():
            return bytes(session.stop())

    def _export(self) -> bool:
        """End the open session and write its events. Return False if the program's own profiler has taken over."""
        session, self._session = self._session, None
        if session is None:
            return False
        with self._quiet():
            session.export_to_tb()
        return True

    def _step_aside(self, for_good: bool, original: Callable[..., T]) -> Callable[..., T]:
        """Wrap a function by which the program uses the profiler: end our session first, then call the function."""

        def begin(*args: object, **kwds: object) -> T:
            with self._lock:
                self._aside_until = _FOREVER_NS if for_good else clock.now_ns() + _GRACE_NS
                self._interrupted.set()
                self._stop()
            self.recorder.note(_ASIDE)
            return original(*args, **kwds)

        return begin

    def _end_before(self, join: Callable[..., T]) -> Callable[..., T]:
        """Wrap a function that makes a process a worker: end an open session first."""

        def enable(*args: object, **kwds: object) -> T:
            with self._lock:
                self._interrupted.set()
                self.call_safely(self._stop)
                return join(*args, **kwds)

        return enable

    def _must_wait(self) -> bool:
        """Return whether there are peers, or the program's own profiler is on or about to be."""
        return distribution.has_peers() or self._is_profiling() or clock.now_ns() < self._aside_until


def log_silencer() -> Callable[[], AbstractContextManager[None]]:
    """Return a context manager in which TensorFlow's C++ side logs only errors.

    Starting a profiler session writes several lines to stderr that the program would not have written.
    """
    functions = profiler.log_level()
    if functions is None:
        return nullcontext
    get, set_level = functions
    errors_only = 2

    @contextmanager
    def silence() -> Iterator[None]:
        level = get()
        set_level(max(level, errors_only))
        try:
            yield
        finally:
            set_level(level)

    return silence
