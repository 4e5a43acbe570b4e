"""How a supervisor reaches an agent: through a process whose input and output are the agent's.

The process is a child on this machine, or ssh or `srun` to another one. Its output arrives at `hear`, in a thread.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Protocol

from stoker.launch.events import AgentGone, AgentNoise, LinkReport
from stoker.launch.hosts import Host
from stoker.launch.messages import Command, decode_report, encode

AGENT = "stoker.launch.agent"
# An agent kills its workers at once when its input ends.
_END_S = 3.0


class Link(Protocol):
    """A connection to an agent."""

    def send(self, command: Command) -> None:
        """Send a command. If the agent has gone, the command is lost."""

    def close(self) -> None:
        """End the agent, and with it its workers."""


Hear = Callable[[LinkReport], None]
# Starts an agent on a machine. The agent reports `AgentReady` when it can take commands.
Connect = Callable[[Host, Hear], Link]


class ProcessLink:
    """An agent behind a process."""

    def __init__(self, command: list[str], hear: Hear) -> None:
        self._hear = hear
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin
        self._errors = threading.Thread(target=self._read_errors, args=[self._process.stderr], daemon=True)
        self._errors.start()
        threading.Thread(target=self._read_reports, args=[self._process.stdout], daemon=True).start()

    def send(self, command: Command) -> None:
        """Send a command. If the agent has gone, the command is lost."""
        # The thread that reads reports notices when the agent has gone.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._stdin.write(encode(command))
            self._stdin.flush()

    def close(self) -> None:
        """End the agent, and with it its workers."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            # The process does not answer. The workers end with it, or with the connection.
            self._process.kill()
            self._process.wait()

    def _read_reports(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            try:
                report: LinkReport = decode_report(line)
            except ValueError:
                report = AgentNoise(line.decode("utf-8", "replace").rstrip())
            self._hear(report)
        # Errors from ssh must arrive before the end of the link.
        self._errors.join(timeout=1)
        self._hear(AgentGone(self._process.wait()))

    def _read_errors(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._hear(AgentNoise(line.decode("utf-8", "replace").rstrip()))


def start_local_agent(_: Host, hear: Hear) -> Link:
    """Start an agent on this machine."""
    return ProcessLink([sys.executable, "-m", AGENT], hear)
