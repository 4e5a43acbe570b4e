"""Running the program as a child: pass signals on, wait for its end, and end in the same way."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

_FORWARDED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
_TICK_S = 0.5
_PR_SET_PDEATHSIG = 1


def run(command: list[str], environment: dict[str, str], tick: Callable[[], None] | None = None) -> int:
    """Run a command to its end, calling `tick` now and then. Return its code: negative if a signal ended it."""
    waited = {*_FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        process = subprocess.Popen(command, env=environment, preexec_fn=in_child(before))
        return _wait(process, waited, tick)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(
    process: subprocess.Popen[bytes], waited: set[signal.Signals], tick: Callable[[], None] | None
) -> int:
    while True:
        info = signal.sigtimedwait(waited, _TICK_S)
        status = process.poll()
        if status is not None:
            return status
        # The terminal sends its signals (si_code > 0) to the whole group, so the program already has them.
        if info is not None and info.si_signo in _FORWARDED and info.si_code <= 0:
            process.send_signal(info.si_signo)
        elif tick is not None:
            tick()


def in_child(mask: set[signal.Signals | int]) -> Callable[[], None]:
    """Return what the child does before it becomes the program: undo our signal mask, and die if we do."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if prctl is not None:
            # If Stoker is killed, nobody waits for the program any more, so it must end.
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def exit_code_of(status: int) -> int:
    """Return the exit code as a shell reports it: 128 plus the number of the signal."""
    return status if status >= 0 else 128 - status


def end_like_program(status: int) -> int:
    """End as the program did: with its exit code, or by the signal that ended it."""
    if status >= 0:
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    _no_core_dump()
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return exit_code_of(status)


def _no_core_dump() -> None:
    """Prevent a core file: ours would replace the program's own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
