"""The only thread that Stoker runs in the program. It saves the books about every second and takes profiler windows."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable

from stoker import clock

_TICK_S = 0.2
_SAVE_S = 1.0
# The share of the program's time that saving may take: a long record is saved less often. The share of a run's age that
# is lost at most if the run is killed: a long run is saved less often, too.
_SAVE_SHARE = 0.004
_AGE_SHARE = 0.05


class Heartbeat:
    """Calls `poll` several times a second and `save` about every second, until stopped."""

    def __init__(self, poll: Callable[[], None], save: Callable[[], None]) -> None:
        self._poll = poll
        self._save = save
        self._stopped = threading.Event()
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the heartbeat."""
        # Started below the threading module, so that a program that counts its threads counts only its own.
        _thread.start_new_thread(self._run, ())

    def stop(self, wait: bool = True) -> None:
        """Stop. With `wait`, no beat runs after the return; without it, the current beat may still finish."""
        self._stopped.set()
        if wait:
            self._ended.wait()

    def _run(self) -> None:
        born = due = clock.real_ns()
        try:
            while not self._stopped.wait(_TICK_S):
                self._poll()
                if clock.real_ns() >= due:
                    started = time.thread_time_ns()
                    self._save()
                    cost = time.thread_time_ns() - started
                    age = clock.real_ns() - born
                    due = clock.real_ns() + max(
                        int(_SAVE_S * 1e9), int(cost / _SAVE_SHARE), int(age * _AGE_SHARE)
                    )
        finally:
            self._ended.set()
