"""A worker that is asked to leave: SIGTERM to one of them, and all save the same step and end with exit code 75.

Schedulers send the signal before they take a machine away. What it does to a step cannot be told, so it only leaves a
note, which goes into the next agreement of the workers.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

# "Temporary failure, try again": what whoever started the workers takes for a preemption, not for a fault.
EXIT_CODE = 75


class Left(SystemExit):
    """The job was asked to leave and has saved what it did."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


def in_a_job() -> bool:
    """Whether this process was started as a worker, of several or alone."""
    return bool(os.environ.get("TF_CONFIG") or os.environ.get("STOKER_JOB"))


class Leaving:
    """Inside, a SIGTERM is a wish; a second one ends the process as it would have before."""

    def __init__(self, *, listen: bool) -> None:
        # Only the main thread may set a handler; training in another one ends as it always did.
        self._listen = listen and threading.current_thread() is threading.main_thread()
        self._before: Any = None
        self.asked = False

    def __enter__(self) -> Leaving:
        if self._listen:
            self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listen and not self.asked:
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)
