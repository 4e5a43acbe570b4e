"""The machines that are available now, printed every few seconds by a command of the user's."""

from __future__ import annotations

import shlex
import subprocess
import threading

from stoker.errors import StokerError, UsageError
from stoker.launch.events import DiscoveryFailed, EventQueue, HostsChanged
from stoker.launch.hosts import Host, parse_hosts

_EVERY_S = 2.0


def discover_hosts(command: str) -> list[Host]:
    """Run the command, which prints one machine per line with its number of workers, such as `a:4`.

    Raises:
        UsageError: the command fails, or lists no machine.
    """
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"--discover: cannot run {command!r}: {error}") from None
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no error message"])[-1]
        raise UsageError(f"--discover {command!r} failed with exit code {done.returncode}: {why}")
    hosts = parse_hosts(done.stdout, f"--discover {command!r}")
    unlimited = next((host.name for host in hosts if host.slots is None), None)
    if unlimited is not None:
        raise UsageError(
            f"--discover {command!r} gives no number of workers for {unlimited}: print it as {unlimited}:4"
        )
    return hosts


class Discovery:
    """A thread that runs the command every few seconds and puts an event into the queue when its answer changes."""

    def __init__(self, command: str, inbox: EventQueue, known: list[Host], every_s: float = _EVERY_S) -> None:
        self._command = command
        self._inbox = inbox
        self._last_event: HostsChanged | DiscoveryFailed = HostsChanged(known)
        self._every_s = every_s
        self._closed = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """Stop running the command."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._every_s):
            event = self._ask()
            if event != self._last_event:
                self._last_event = event
                self._inbox.put(event)

    def _ask(self) -> HostsChanged | DiscoveryFailed:
        try:
            return HostsChanged(discover_hosts(self._command))
        except StokerError as error:
            return DiscoveryFailed(str(error))
