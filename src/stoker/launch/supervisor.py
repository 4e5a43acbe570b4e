"""Rounds of a job, until it is done: after a fault all workers are ended and all start again.

A fault counts against `max_restarts`. Workers that were preempted (all saved the same step and left with exit code 75)
and a change of machines do not.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

from stoker.errors import StokerError
from stoker.launch.crew import Crew
from stoker.launch.discovery import Discovery
from stoker.launch.hosts import Host, Size, share
from stoker.launch.job import Job
from stoker.launch.limits import Limits
from stoker.launch.links import Queue, Reach
from stoker.launch.messages import Message
from stoker.launch.round import Ending, Round, told_to_end
from stoker.launch.view import View

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# An elastic job does not hold its other machines up for one that may be gone for good.
_ELASTIC_WAIT_S = 15.0
# Workers that are preempted again and again as soon as they start are started more and more slowly.
_HASTY_S, _LONGEST_REST_S = 10.0, 60.0


class LaunchError(StokerError):
    """The job could not be started, or not any more: a machine does not answer, too few are left."""

    exit_code = 1


class Supervisor:
    """One job."""

    def __init__(
        self,
        job: Job,
        size: Size,
        hosts: list[Host],
        reach: Reach,
        limits: Limits,
        view: View,
        discover: str | None = None,
    ) -> None:
        self._job, self._size, self._hosts, self._limits, self._view = job, size, hosts, limits, view
        self._inbox: Queue = SimpleQueue()
        self._crew = Crew(reach, self._inbox, self._text)
        self._discover = discover
        self._told: list[int] = []
        self._round: Round | None = None
        self.restarts = 0
        self._hasty = 0

    @property
    def ranks(self) -> list[int]:
        """The workers of the last round."""
        return list(self._round.places) if self._round else []

    def run(self) -> int:
        """The exit code of the job.

        Raises:
            LaunchError: it could not be started.
        """
        discovery = Discovery(self._discover, self._inbox, self._hosts) if self._discover else None
        try:
            with self._listening_to_signals():
                return self._rounds()
        finally:
            if discovery is not None:
                discovery.close()
            self._crew.close()
            self._view.close()

    def _rounds(self) -> int:
        faults = 0
        while True:
            ending = self._one_round()
            if ending.kind == "done":
                return 0
            if ending.kind == "told":
                self._view.tell(ending.line)
                return ending.code
            faults += ending.kind == "fault"
            if faults > self._limits.max_restarts:
                after = f" after {faults - 1} restart{'s' * (faults > 2)}" if faults > 1 else ""
                self._view.tell(f"{ending.line}; giving up{after}")
                return ending.code
            counted = f" ({faults} of {self._limits.max_restarts})" if ending.kind == "fault" else ""
            self._view.tell(f"{ending.line}; restarting all workers{counted}")
            self.restarts += 1
            self._rest(ending)

    def _one_round(self) -> Ending:
        shares = self._shares()
        if self._told:
            return told_to_end(self._told)
        number, before = self.restarts, self._round.shares if self._round else None
        self._round = Round(self._crew, self._job, self._limits, number, self._hosts, shares, self._view.tell)
        self._view.begin(list(self._round.places), number)
        try:
            wrong = self._round.start()
            if wrong is not None:
                return Ending("fault", wrong, 1)
            if number == 0 or shares != before:
                self._view.tell(self._greeting(self._round))
            return self._round.watch(self._told, self._changed)
        finally:
            self._round.end()

    def _greeting(self, started: Round) -> str:
        count, machines = len(started.places), len(started.names)
        where = f" on {machines} machines" if machines > 1 else ""
        return f"job {self._job.id}: {count} worker{'s' * (count > 1)}{where}, logs in {self._view.directory}"

    def _shares(self) -> dict[str, int]:
        """Who answers, and how many workers each of them has."""
        again = self._size.elastic and self.restarts
        limit = min(self._limits.start_s, _ELASTIC_WAIT_S) if again else self._limits.start_s
        missing = self._crew.meet(self._hosts, limit)
        for name, why in missing.items():
            if not self._size.elastic:
                raise LaunchError(f"{name} cannot be reached: {why}")
            self._view.tell(f"{name} cannot be reached: {why}")
        there = [host for host in self._hosts if host.name in self._crew]
        shares = share(there, self._size)
        if shares is None and not self._told:
            room = sum(host.slots or 0 for host in there)
            raise LaunchError(f"the job needs {self._size.least} workers, and there is room for {room}")
        return shares or {}

    def _changed(self, message: Message) -> bool:
        """Other machines: whether that makes a difference."""
        hosts: list[Host] = message["hosts"]
        wanted = share(hosts, self._size)
        if wanted is None:
            self._view.tell(
                f"the machines named now have no room for {self._size.least} workers; going on as before"
            )
            return False
        self._hosts = hosts
        return self._round is not None and wanted != self._round.shares

    def _text(self, message: Message) -> None:
        self._view.show(message["rank"], message["stream"], message["lines"])

    def _rest(self, ending: Ending) -> None:
        """Before workers that never get far are started once more."""
        assert self._round is not None
        self._hasty = self._hasty + 1 if ending.kind == "preempted" and self._round.seconds < _HASTY_S else 0
        until = time.monotonic() + (min(2.0**self._hasty, _LONGEST_REST_S) if self._hasty > 1 else 0.0)
        while time.monotonic() < until and not self._told:
            self._crew.listen(until - time.monotonic())

    @contextmanager
    def _listening_to_signals(self) -> Iterator[None]:
        def take(number: int, _: FrameType | None) -> None:
            self._told.append(number)
            # Reentrant, unlike other queues.
            self._inbox.put(("", {"say": "wake"}))

        before = {number: signal.signal(number, take) for number in _PASSED_ON}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
