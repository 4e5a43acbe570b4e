"""The events that a supervisor reacts to: agents' reports, signals, and changes in the available machines."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from stoker.launch.hosts import Host
from stoker.launch.messages import Report


@dataclass(frozen=True)
class AgentNoise:
    """A line from an agent, or from its ssh, that is not a message."""

    text: str


@dataclass(frozen=True)
class AgentGone:
    """The connection to an agent has ended."""

    status: int


LinkReport = Report | AgentNoise | AgentGone


@dataclass(frozen=True)
class AgentEvent:
    """An event from a link; `link` tells the current agent of a machine from an earlier one."""

    host: str
    link: int
    report: LinkReport


@dataclass(frozen=True)
class SignalReceived:
    """`stoker launch` received a signal that it passes on to the workers."""

    number: int


@dataclass(frozen=True)
class HostsChanged:
    """`--discover` printed a different list of machines than before."""

    hosts: list[Host]


@dataclass(frozen=True)
class DiscoveryFailed:
    """`--discover` failed."""

    why: str


JobEvent = AgentEvent | SignalReceived | HostsChanged | DiscoveryFailed


class EventQueue:
    """All events of a job, in the order they came. A stage that waits for agents leaves other events to the next."""

    def __init__(self) -> None:
        # Unlike other queues, a SimpleQueue may be written to in a signal handler.
        self._incoming: SimpleQueue[JobEvent] = SimpleQueue()
        self._unhandled: deque[JobEvent] = deque()

    def put(self, event: JobEvent) -> None:
        """Add an event, from any thread or signal handler."""
        self._incoming.put(event)

    def get(self, timeout_s: float) -> JobEvent | None:
        """Take the next event; None if none comes in time."""
        if not self._unhandled and not self._receive(timeout_s):
            return None
        return self._unhandled.popleft()

    def get_agent_event(self, timeout_s: float, *, until_signal: bool = False) -> AgentEvent | None:
        """Take the next event of an agent; None if none comes in time, or before a signal."""
        deadline = time.monotonic() + timeout_s
        while True:
            # Look for a signal first: this takes in all events that have arrived, and none of them must wait for the
            # next one.
            signalled = until_signal and self.find_signal() is not None
            for event in self._unhandled:
                if isinstance(event, AgentEvent):
                    self._unhandled.remove(event)
                    return event
            if signalled:
                return None
            if not self._receive(deadline - time.monotonic()):
                return None

    def find_signal(self) -> SignalReceived | None:
        """Return the first unhandled signal, which stays in the queue."""
        while self._receive(0):
            pass
        return next((event for event in self._unhandled if isinstance(event, SignalReceived)), None)

    def _receive(self, timeout_s: float) -> bool:
        try:
            self._unhandled.append(self._incoming.get(timeout=max(0.0, timeout_s)))
        except Empty:
            return False
        return True
