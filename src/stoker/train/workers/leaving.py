"""Signals that ask a training run to stop, handled between two calls, when the work can be saved.

Schedulers send SIGTERM to a worker before they take its machine away; SLURM may send SIGUSR1 to all processes of a step
(`--signal=USR1@60`). The workers learn of it at their next agreement: all save the same step and end with exit code 75.
On Ctrl-C, a run with a checkpoint saves and is then interrupted. In a job, whose launcher passes Ctrl-C on, it means
the same as SIGTERM.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

# "Temporary failure, try again": whatever started the workers takes this code for a preemption, not for a fault.
EXIT_CODE = 75


class JobLeft(SystemExit):
    """The job was asked to stop and has saved its work."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


def is_in_a_job() -> bool:
    """Return whether this process was started as a worker, one of several or alone."""
    return bool(os.environ.get("TF_CONFIG") or os.environ.get("STOKER_JOB"))


def list_warnings() -> list[signal.Signals]:
    """Return a scheduler's warning signals: SIGTERM and, in SLURM, SIGUSR1 unless the program handles it."""
    is_free = signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    return [signal.SIGTERM, *([signal.SIGUSR1] if is_free and "SLURM_JOB_ID" in os.environ else [])]


class Leaving:
    """Notes a signal in `asked` within a `with` block; a second signal has its usual effect."""

    def __init__(self, *numbers: signal.Signals, listen: bool) -> None:
        # Only the main thread may set a handler. In other threads, a signal ends training as usual.
        self._listen = listen and threading.current_thread() is threading.main_thread()
        self._numbers = numbers or (signal.SIGTERM,)
        self._before: dict[signal.Signals, Any] = {}
        self.asked = False

    def __enter__(self) -> Leaving:
        if self._listen:
            self._before = {number: signal.signal(number, self._note) for number in self._numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore_handlers(list(self._before))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        # SLURM also sends SIGUSR1 to the launcher, which passes it on as SIGTERM: the same request again.
        again = number == signal.SIGUSR1
        self._restore_handlers([signal.SIGUSR1] if again else list(self._before))

    def _restore_handlers(self, numbers: list[signal.Signals]) -> None:
        for number in numbers:
            signal.signal(number, self._before.pop(number) or signal.SIG_DFL)
