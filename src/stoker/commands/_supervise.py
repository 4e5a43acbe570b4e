"""Running the program as a child: signals reach it, its end is waited for, and a live line is drawn."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from stoker.errors import RecordError
from stoker.report.live import LiveLine
from stoker.store import record_files

_FORWARDED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
_TICK_S = 0.5
_PR_SET_PDEATHSIG = 1


class Supervisor:
    """Runs one command to its end."""

    def __init__(self, record_path: Path, live: bool) -> None:
        self._record_path = record_path
        self._line = LiveLine(sys.stderr) if live else None

    def run(self, command: list[str], environment: dict[str, str]) -> int:
        """The command's return code; negative if a signal ended it."""
        waited = {*_FORWARDED, signal.SIGCHLD}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        try:
            process = subprocess.Popen(command, env=environment, preexec_fn=_in_child(before))
            try:
                if self._line:
                    self._line.open()
                return self._wait(process, waited)
            finally:
                if self._line:
                    self._line.close()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _wait(self, process: subprocess.Popen[bytes], waited: set[signal.Signals]) -> int:
        while True:
            info = signal.sigtimedwait(waited, _TICK_S)
            status = process.poll()
            if status is not None:
                return status
            # What the terminal sends (si_code > 0) goes to the whole group: the program has it already.
            if info is not None and info.si_signo in _FORWARDED and info.si_code <= 0:
                process.send_signal(info.si_signo)
            elif self._line:
                self._draw()

    def _draw(self) -> None:
        assert self._line is not None
        try:
            self._line.draw(record_files.read(self._record_path))
        except RecordError:
            return


def _in_child(mask: set[signal.Signals | int]) -> Callable[[], None]:
    """What the child does before it becomes the program: undo our mask, and die with us."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if prctl is not None:
            # If Stoker is killed outright, a program that nobody waits for must not go on.
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    return prepare
