"""All agents of a job: reached, told what to do, and those that are gone let go."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty
from typing import Any

from stoker.launch.hosts import Host
from stoker.launch.links import Heard, Link, Queue, Reach
from stoker.launch.messages import Message

# Of what ssh or an agent complains of, the last lines say why.
_KEPT = 3


class _Numbered:
    """An inbox whose messages bear the number of a link."""

    def __init__(self, inbox: Queue, number: int) -> None:
        self._inbox, self._number = inbox, number

    def put(self, heard: Heard, /) -> None:
        """One message."""
        name, message = heard
        self._inbox.put((name, {**message, "link": self._number}))


class Crew:
    """The agents of the machines a job may use, by the machines' names."""

    def __init__(self, reach: Reach, inbox: Queue, text: Callable[[Message], None]) -> None:
        self._reach = reach
        self._text = text
        self._inbox = inbox
        self._links: dict[str, Link] = {}
        # By number, since what an agent said that is gone may arrive after the next one has started.
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._noise: dict[str, list[str]] = {}
        self._heard: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._links

    def meet(self, hosts: list[Host], within_s: float) -> dict[str, str]:
        """Reach the machines that are not reached yet: why not, for each that does not answer in time.

        Whoever wakes the supervisor ends this early.
        """
        waiting = {host.name for host in hosts} - set(self._links)
        missing: dict[str, str] = {}
        for host in hosts:
            if host.name in waiting:
                self._noise[host.name] = []
                self._count += 1
                self._numbers[host.name] = self._count
                self._links[host.name] = self._reach(host, _Numbered(self._inbox, self._count))
        deadline = time.monotonic() + within_s
        while waiting:
            heard = self.listen(deadline - time.monotonic())
            if heard is None:
                break
            name, message = heard
            if message["say"] == "wake":
                return {}
            if message["say"] in ("hello", "gone") and name in waiting:
                waiting.discard(name)
                if message["say"] == "gone":
                    missing[name] = self.complaint(name) or "it ended at once"
        for name in waiting:
            missing[name] = self.complaint(name) or f"no answer within {within_s:g} s"
        for name in missing:
            self.drop(name)
        return missing

    def listen(self, timeout_s: float) -> tuple[str, Message] | None:
        """The next message of any agent; None if there is none in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                name, message = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                return None
            if message.get("link") in (None, self._numbers.get(name)):
                break
        self._heard[name] = time.monotonic()
        if message["say"] == "noise":
            self._noise[name] = [*self._noise.get(name, []), message["text"]][-_KEPT:]
        elif message["say"] == "text":
            self._text(message)
        return name, message

    def complaint(self, name: str) -> str:
        """What was last heard that was no message."""
        return " ".join(line for line in self._noise.get(name, []) if line)

    def silent(self, names: list[str], longer_than_s: float, late_s: float) -> str | None:
        """A machine of these that has said nothing for so long; `late_s` are seconds in which nobody listened."""
        for name in names:
            self._heard[name] = self._heard.get(name, time.monotonic()) + late_s
            if time.monotonic() - self._heard[name] > longer_than_s:
                return name
        return None

    def send(self, names: list[str], say: str, **fields: Any) -> None:
        """Say the same to several."""
        for name in names:
            if name in self._links:
                self._links[name].send(say, **fields)

    def gather(self, names: list[str], say: str, within_s: float) -> dict[str, Message]:
        """An answer of each, as far as they come in time; what else is said meanwhile is of a round that is over."""
        answers: dict[str, Message] = {}
        deadline = time.monotonic() + within_s
        while set(names) - set(answers) - self._lost(names):
            heard = self.listen(deadline - time.monotonic())
            if heard is None:
                break
            name, message = heard
            if message["say"] == say:
                answers[name] = message
            elif message["say"] == "gone":
                self.drop(name)
        return answers

    def _lost(self, names: list[str]) -> set[str]:
        return {name for name in names if name not in self._links}

    def drop(self, name: str) -> None:
        """Let a machine go."""
        link = self._links.pop(name, None)
        self._numbers.pop(name, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Let all go."""
        for name in list(self._links):
            self.drop(name)
