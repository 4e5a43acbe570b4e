"""Which machines there are now: a command of the user's says so, again and again."""

from __future__ import annotations

import shlex
import subprocess
import threading

from stoker.errors import StokerError, UsageError
from stoker.launch.hosts import Host, hosts_of
from stoker.launch.links import Inbox

_EVERY_S = 2.0


def ask(command: str) -> list[Host]:
    """What the command prints: a machine a line, with the number of workers it has room for, such as `a:4`.

    Raises:
        UsageError: the command fails, or names no machine.
    """
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"--discover {command!r} cannot be run: {error}") from None
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no error message"])[-1]
        raise UsageError(f"--discover {command!r} ended with exit code {done.returncode}: {why}")
    found = hosts_of(done.stdout, f"--discover {command!r}")
    nameless = next((host for host in found if host.slots is None), None)
    if nameless is not None:
        raise UsageError(f"--discover {command!r}: {nameless.name} has no number: print {nameless.name}:4")
    return found


class Discovery:
    """Asks every few seconds and tells the supervisor when the answer is another one."""

    def __init__(self, command: str, inbox: Inbox, known: list[Host], every_s: float = _EVERY_S) -> None:
        self._command = command
        self._inbox = inbox
        self._known = known
        self._every_s = every_s
        self._ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """Ask no more."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                found = ask(self._command)
            except StokerError as error:
                self._inbox.put(("", {"say": "trouble", "line": str(error)}))
                continue
            if found != self._known:
                self._known = found
                self._inbox.put(("", {"say": "hosts", "hosts": found}))
