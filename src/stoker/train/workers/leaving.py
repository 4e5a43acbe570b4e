"""Signals that ask a training to leave, heard between two calls, where what was done can be saved.

SIGTERM to a worker: schedulers send it before they take a machine away. It goes into the next agreement of the workers:
all save the same step and end with exit code 75. Ctrl-C, where there is a checkpoint: the training saves, and then is
interrupted. What either does in the middle of a step could not be told.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

# "Temporary failure, try again": what whoever started the workers takes for a preemption, not for a fault.
EXIT_CODE = 75


class JobLeft(SystemExit):
    """The job was asked to leave and has saved what it did."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


def in_a_job() -> bool:
    """Whether this process was started as a worker, of several or alone."""
    return bool(os.environ.get("TF_CONFIG") or os.environ.get("STOKER_JOB"))


class Leaving:
    """Inside, the signal is a wish; a second one does what it would have done before."""

    def __init__(self, number: signal.Signals = signal.SIGTERM, *, listen: bool) -> None:
        # Only the main thread may set a handler; training in another one ends as it always did.
        self._listen = listen and threading.current_thread() is threading.main_thread()
        self._number = number
        self._before: Any = None
        self.asked = False

    def __enter__(self) -> Leaving:
        if self._listen:
            self._before = signal.signal(self._number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listen and not self.asked:
            signal.signal(self._number, self._before or signal.SIG_DFL)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(self._number, self._before or signal.SIG_DFL)
