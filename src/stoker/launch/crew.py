"""All agents of a job: connects to them, sends them commands, and drops those whose connection has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from stoker.launch.events import AgentEvent, AgentGone, AgentNoise, EventQueue, JobEvent, LinkReport
from stoker.launch.hosts import Host
from stoker.launch.links import Connect, Link
from stoker.launch.messages import AgentReady, Command, Report, WorkerEvents, WorkerOutput

# How many of the last lines from ssh or an agent are kept, to say why it has gone.
_KEPT_LINES = 3
Answer = TypeVar("Answer", bound=Report)


class Crew:
    """The agents on the machines that a job may use, by the machines' names."""

    def __init__(
        self, connect: Connect, inbox: EventQueue, keep: Callable[[WorkerOutput | WorkerEvents], None]
    ) -> None:
        self._connect = connect
        self._keep = keep
        self._inbox = inbox
        self._links: dict[str, Link] = {}
        # An agent's report may arrive after its successor has started.
        self._link_numbers: dict[str, int] = {}
        self._link_count = 0
        self._noise: dict[str, list[str]] = {}
        self._last_heard_at: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._links

    def meet(self, hosts: list[Host], within_s: float) -> dict[str, str]:
        """Connect to the machines that have no agent yet; return the reason for each that did not answer in time.

        A signal ends the wait early.
        """
        waiting = {host.name for host in hosts} - set(self._links)
        for host in hosts:
            if host.name in waiting:
                self._open_link(host)
        missing: dict[str, str] = {}
        deadline = time.monotonic() + within_s
        while waiting:
            event = self._listen_to_agents(deadline, until_signal=True)
            if event is None:
                break
            if event.host in waiting and isinstance(event.report, AgentReady | AgentGone):
                waiting.discard(event.host)
                if isinstance(event.report, AgentGone):
                    missing[event.host] = self.get_complaint(event.host) or "it ended at once"
        if self._inbox.find_signal() is not None:
            return {}
        for name in waiting:
            missing[name] = self.get_complaint(name) or f"no answer within {within_s:g} s"
        for name in missing:
            self.drop(name)
        return missing

    def _open_link(self, host: Host) -> None:
        self._noise[host.name] = []
        self._link_count += 1
        self._link_numbers[host.name] = self._link_count
        self._links[host.name] = self._connect(host, partial(self._hear, host.name, self._link_count))

    def _hear(self, host: str, link: int, report: LinkReport) -> None:
        self._inbox.put(AgentEvent(host, link, report))

    def listen(self, timeout_s: float) -> JobEvent | None:
        """Wait for the next event of the job; None if none comes in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self._inbox.get(deadline - time.monotonic())
            if not isinstance(event, AgentEvent) or self._accept(event):
                return event

    def _listen_to_agents(self, deadline: float, *, until_signal: bool = False) -> AgentEvent | None:
        """Wait for the next event of an agent, and leave other events in the queue for later callers."""
        while True:
            left_s = deadline - time.monotonic()
            event = self._inbox.get_agent_event(left_s, until_signal=until_signal)
            if event is None or self._accept(event):
                return event

    def _accept(self, event: AgentEvent) -> bool:
        """Note what an agent reported; False if that agent has been dropped."""
        if event.link != self._link_numbers.get(event.host):
            return False
        self._last_heard_at[event.host] = time.monotonic()
        if isinstance(event.report, AgentNoise):
            self._noise[event.host] = [*self._noise[event.host], event.report.text][-_KEPT_LINES:]
        elif isinstance(event.report, WorkerOutput | WorkerEvents):
            self._keep(event.report)
        return True

    def pause(self, seconds: float) -> None:
        """Wait, but only until a signal arrives; workers' output is still shown."""
        deadline = time.monotonic() + seconds
        while self._listen_to_agents(deadline, until_signal=True) is not None:
            pass

    def get_complaint(self, name: str) -> str:
        """Return the last lines from a machine that were not messages."""
        return " ".join(line for line in self._noise.get(name, []) if line)

    def find_silent(self, names: list[str], longer_than_s: float, late_s: float) -> str | None:
        """Find a machine that has been silent for that long; for the last `late_s` seconds nobody listened."""
        for name in names:
            self._last_heard_at[name] = self._last_heard_at.get(name, time.monotonic()) + late_s
            if time.monotonic() - self._last_heard_at[name] > longer_than_s:
                return name
        return None

    def send(self, names: list[str], command: Command) -> None:
        """Send a command to several agents."""
        for name in names:
            if name in self._links:
                self._links[name].send(command)

    def gather(self, names: list[str], kind: type[Answer], within_s: float) -> dict[str, Answer]:
        """Wait for an answer from each agent; return those that come in time. Any other report is outdated."""
        answers: dict[str, Answer] = {}
        deadline = time.monotonic() + within_s
        while any(name in self._links and name not in answers for name in names):
            event = self._listen_to_agents(deadline)
            if event is None:
                break
            if isinstance(event.report, kind):
                answers[event.host] = event.report
            elif isinstance(event.report, AgentGone):
                self.drop(event.host)
        return answers

    def drop(self, name: str) -> None:
        """Close the connection to a machine."""
        link = self._links.pop(name, None)
        self._link_numbers.pop(name, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Close all connections."""
        for name in list(self._links):
            self.drop(name)
