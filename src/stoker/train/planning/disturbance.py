"""How much of their time this process' threads waited for a core that something else had, as Linux counts it."""

from __future__ import annotations

import os
from pathlib import Path

_TASKS = Path("/proc/self/task")


class Disturbance:
    """From its making on: the share of the wanted time in which the threads ran."""

    def __init__(self) -> None:
        self._begin = _run_and_wait()

    def ran_share(self) -> float:
        """1 when no thread had to wait, and where nobody counts."""
        run, wait = (now - before for now, before in zip(_run_and_wait(), self._begin, strict=True))
        return run / (run + wait) if run > 0 and wait > 0 else 1.0


def _run_and_wait() -> tuple[int, int]:
    """Nanoseconds of all threads, running and waiting to run."""
    run = wait = 0
    try:
        for task in os.listdir(_TASKS):
            words = (_TASKS / task / "schedstat").read_text(encoding="ascii").split()
            run, wait = run + int(words[0]), wait + int(words[1])
    except OSError:
        # Another system, or a thread that ended while it was asked: no figure rather than a wrong one.
        return 0, 0
    return run, wait
