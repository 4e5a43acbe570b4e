"""How a supervisor reaches an agent: a child process here, ssh or `srun` to another machine.

Whatever it is, it is a process whose input and output are the agent's. What agents say arrives in one queue.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import IO, Protocol

from stoker.launch.hosts import LOCAL, Host
from stoker.launch.messages import Message, decode, encode

AGENT = "stoker.launch.agent"
# An agent ends its workers at once.
_END_S = 3.0
# (the machine's name, what its agent said); beside the agent's own words `noise` (text) and `gone`.
Heard = tuple[str, Message]
Queue = SimpleQueue[Heard]


class Inbox(Protocol):
    """Where links put what they hear."""

    def put(self, heard: Heard, /) -> None:
        """One message."""


class Link(Protocol):
    """A connection to an agent."""

    def send(self, say: str, **fields: object) -> None:
        """Say something; to an agent that is gone, nothing."""

    def close(self) -> None:
        """End the agent, and its workers with it."""


class Reach(Protocol):
    """A way to machines."""

    def __call__(self, host: Host, inbox: Inbox) -> Link:
        """Start an agent there; it says hello when it is ready."""


class ProcessLink:
    """An agent behind a command."""

    def __init__(self, name: str, command: list[str], inbox: Inbox) -> None:
        self._name = name
        self._inbox = inbox
        # In a session of its own: what is typed at the terminal goes to the supervisor alone.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._threads = [
            threading.Thread(target=self._hear, args=[self._process.stdout], daemon=True),
            threading.Thread(target=self._overhear, args=[self._process.stderr], daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, say: str, **fields: object) -> None:
        """Say something; to an agent that is gone, nothing."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encode(say, **fields))
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            # Its end is heard by the thread that listens.
            pass

    def close(self) -> None:
        """End the agent, and its workers with it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            # It does not answer; its workers end with it, or with the connection.
            self._process.kill()
            self._process.wait()

    def _hear(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            try:
                message = decode(line)
            except ValueError:
                message = {"say": "noise", "text": line.decode("utf-8", "replace").rstrip()}
            self._inbox.put((self._name, message))
        self._threads[1].join(timeout=1)
        self._inbox.put((self._name, {"say": "gone", "status": self._process.wait()}))

    def _overhear(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            text = line.decode("utf-8", "replace").rstrip()
            self._inbox.put((self._name, {"say": "noise", "text": text}))


def local(host: Host, inbox: Inbox) -> Link:
    """An agent on this machine."""
    return ProcessLink(host.name, [sys.executable, "-m", AGENT], inbox)


class Ssh:
    """Agents behind ssh, which must get in without a password; the project is in the same directory there."""

    def __init__(self, command: str = "ssh", python: str | None = None) -> None:
        self._command = shlex.split(command)
        self._python = python or sys.executable

    def __call__(self, host: Host, inbox: Inbox) -> Link:
        """Start an agent there; the machine called localhost needs no ssh."""
        if host.name == LOCAL:
            return local(host, inbox)
        there = f"cd {shlex.quote(os.getcwd())} && exec {shlex.quote(self._python)} -m {AGENT}"
        # -T: no terminal. BatchMode: a question for a password is an error, since nobody is there to answer.
        options = ["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"]
        return ProcessLink(host.name, [*self._command, *options, host.name, there], inbox)


class Srun:
    """Agents as steps of a SLURM allocation, one on each node."""

    def __init__(self, python: str | None = None) -> None:
        self._python = python or sys.executable

    def __call__(self, host: Host, inbox: Inbox) -> Link:
        """Start an agent there."""
        where = ["--nodes=1", "--ntasks=1", f"--nodelist={host.name}", "--overlap", "--unbuffered"]
        # Its workers take all of what the job has on the node, and none of it is shared out by tasks.
        options = ["--mem=0", "--kill-on-bad-exit=0", "--input=all", "--quiet"]
        command = ["srun", *where, *options, self._python, "-m", AGENT]
        return ProcessLink(host.name, command, inbox)
