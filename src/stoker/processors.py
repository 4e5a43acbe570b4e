"""Processor time: how much this process got, how long its threads waited for it, how many processors are free.

Linux counts both for each thread. On systems that do not count, waiting times are zero.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

_TASKS = Path("/proc/self/task")
_MAIN = Path("/proc/self/schedstat")
# In this file, the fourth word is the number of threads that run or could run.
_LOAD = Path("/proc/loadavg")
_LOOKS, _BETWEEN_LOOKS_S = 5, 0.004


class ProcessorUse(NamedTuple):
    """Nanoseconds that this process ran or waited, up to now or between two moments."""

    # On a processor, summed over all threads.
    ran: int = 0
    # Ready to run, but without a processor: the main thread, and the sum over all threads.
    waited: int = 0
    all_waited: int = 0

    @classmethod
    def up_to_now(cls) -> ProcessorUse:
        """Return the use since the process began. This takes a few microseconds per thread."""
        main = str(os.getpid())
        waits = {}
        try:
            for task in os.listdir(_TASKS):
                waits[task] = _wait_ns(_TASKS / task / "schedstat")
        except OSError:
            waits = {}
        return cls(time.process_time_ns(), waits.get(main, 0), sum(waits.values()))

    def since(self, before: ProcessorUse) -> ProcessorUse:
        """Return the use from an earlier moment to this one. The waits of ended threads are lost; none is negative."""
        return ProcessorUse(*(max(0, now - then) for now, then in zip(self, before, strict=True)))

    def stretch(self, elapsed: int, cores: int) -> float:
        """Return the factor by which other programs, which held the processors, slowed something down.

        Threads also wait for processors that other threads of this process hold, so other programs can have held only
        the time that is left.
        """
        left_over = max(0, cores * elapsed - self.ran)
        return 1.0 + min(self.all_waited, left_over) / self.ran if self.ran > 0 else 1.0


def main_thread_wait_ns() -> int:
    """Return how long the main thread has been ready to run without a processor."""
    return _wait_ns(_MAIN)


def _wait_ns(path: Path) -> int:
    """Return how long a thread has waited; 0 if it has just ended."""
    try:
        return int(path.read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0


def count_free_processors() -> int:
    """Return how many processors are idle now, at least one; the caller's own thread does not count as use.

    If there are more threads than free processors, threads that wait for each other in a loop, as OpenMP's do, lose
    tens of times as much as they gain.
    """
    running = []
    for _ in range(_LOOKS):
        try:
            running.append(int(_LOAD.read_text(encoding="ascii").split()[3].partition("/")[0]) - 1)
        except (OSError, IndexError, ValueError):
            return usable_cores()
        time.sleep(_BETWEEN_LOOKS_S)
    return max(1, usable_cores() - round(sum(running) / _LOOKS))


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
