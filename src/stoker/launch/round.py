"""One start of all workers, until they have all ended or one of them is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stoker.doctor.measure.supervise import exit_code_of
from stoker.launch.arrivals import Arrivals
from stoker.launch.crew import Crew
from stoker.launch.hosts import Host
from stoker.launch.job import Job
from stoker.launch.limits import PREEMPTED, Limits
from stoker.launch.messages import Message

_TICK_S = 0.2
# When one worker dies, its peers fail over it at once: who died first is known only a little later.
_BLAME_S = 0.5
# Later than this, the supervisor itself stood still.
_LATE_S = 1.0
# An agent that does not confirm within so long that its workers are gone does not answer at all.
_KILL_S = 5.0


@dataclass(frozen=True)
class Ending:
    """How a round ended, in a word and in a line; `code` is the exit code it would mean."""

    kind: Literal["done", "preempted", "fault", "told", "changed"]
    line: str = ""
    code: int = 0


class Round:
    """All workers, started together; `shares` says how many each machine has, in the order of ranks."""

    def __init__(
        self,
        crew: Crew,
        job: Job,
        limits: Limits,
        number: int,
        hosts: list[Host],
        shares: dict[str, int],
        tell: Callable[[str], None],
    ) -> None:
        self._crew, self._job, self._limits, self.number, self._tell_user = crew, job, limits, number, tell
        self._hosts = {host.name: host for host in hosts}
        self.shares = shares
        self.names = list(shares)
        # The machine of each rank. A job that somebody else has started has one worker here, of any rank.
        first = job.place.rank if job.place else 0
        machines = [name for name, count in shares.items() for _ in range(count)]
        self.places = dict(enumerate(machines, first))
        elsewhere = dict(enumerate(job.place.addresses)) if job.place else {}
        self._arrivals = Arrivals(
            self.places,
            {rank: address for rank, address in elsewhere.items() if rank not in self.places},
            limits.start_s,
            self._who,
        )
        self._ended: dict[int, int] = {}
        # Signals that were passed on, whether other machines are to be used, and the moments that deadlines count from.
        self._told: list[int] = []
        self._asked = False
        self._ends_at: float | None = None
        self._lost: str | None = None
        self._fault_at: float | None = None
        self._started_at = self._looked_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._started_at

    def start(self) -> str | None:
        """Start all workers at fresh ports; what went wrong, if something did."""
        ports = self._ports()
        if ports is None:
            return f"no free ports: an agent did not answer within {self._limits.start_s:g} s"
        self._addresses = (
            self._job.place.addresses
            if self._job.place
            else [f"{self._hosts[name].address}:{ports[rank]}" for rank, name in self.places.items()]
        )
        for name in self.names:
            self._crew.send(
                [name],
                "start",
                round=self.number,
                directory=self._job.directory,
                arguments=self._job.arguments,
                environment=self._job.environment(),
                heartbeat=self._limits.heartbeat_s,
                door=not self._job.ledger,
                workers=[
                    {
                        "rank": rank,
                        "port": ports[rank],
                        "environment": self._job.of_worker(rank, self._addresses, self.number),
                    }
                    for rank, place in self.places.items()
                    if place == name
                ],
            )
        self._started_at = self._looked_at = time.monotonic()
        self._arrivals.restart_clock()
        return None

    def _ports(self) -> dict[int, int] | None:
        """The port of each worker here; None if an agent does not answer."""
        if self._job.place is not None:
            own = self._job.place.addresses[self._job.place.rank]
            return {self._job.place.rank: int(own.rpartition(":")[2])}
        for name, count in self.shares.items():
            self._crew.send([name], "ports", count=count)
        found = self._crew.gather(self.names, "ports", self._limits.start_s)
        if len(found) < len(self.names):
            return None
        return dict(enumerate(port for name in self.names for port in found[name]["ports"]))

    def watch(self, told: list[int], changed: Callable[[Message], bool]) -> Ending:
        """Until it is over: `told` grows by the signals to pass on, `changed` says whether new machines matter."""
        while True:
            heard = self._crew.listen(_TICK_S)
            if heard is not None:
                self._take(*heard)
                if heard[1]["say"] == "hosts" and changed(heard[1]):
                    self._ask_to_end(signal.SIGTERM)
                    self._asked = True
            if len(told) > len(self._told):
                self._tell(list(told))
            self._look_for_silent_machines()
            ending = self._ending()
            if ending is not None:
                return ending

    def end(self) -> None:
        """No worker is left when this returns; a machine that does not confirm it is let go."""
        self._arrivals.close()
        self._crew.send(self.names, "kill")
        confirmed = self._crew.gather(self.names, "killed", _KILL_S)
        for name in set(self.names) - set(confirmed):
            self._crew.drop(name)

    def _tell(self, told: list[int]) -> None:
        if not self._told:
            self._ask_to_end(told[-1])
        else:
            # Who asks twice does not want to wait.
            self._ends_at = time.monotonic()
        self._told = told

    def _ask_to_end(self, number: int) -> None:
        self._crew.send(self.names, "signal", number=number)
        self._ends_at = time.monotonic() + self._limits.grace_s

    def _take(self, name: str, message: Message) -> None:
        say, now = message["say"], time.monotonic()
        if say == "gone" and name in self.shares:
            self._crew.drop(name)
            why = self._crew.complaint(name)
            self._blame(f"the agent on {name} is gone" + (f" ({why})" if why else ""))
        if message.get("round") != self.number:
            return
        if say == "up":
            self._arrivals.note_start(message["rank"])
        elif say == "joined":
            self._arrivals.note_join(message["rank"])
        elif say == "exit":
            self._ended[message["rank"]] = message["status"]
            if message["status"] not in (0, PREEMPTED):
                self._fault_at = self._fault_at or now
            elif message["status"] == PREEMPTED:
                self._ends_at = self._ends_at or now + self._limits.grace_s
        elif say == "silent":
            if not message["stopped"] and self._arrivals.may_be_silent(
                message["seconds"], self._limits.heartbeat_s, now
            ):
                return
            stopped = "; it is stopped" if message["stopped"] else ""
            self._blame(
                f"{self._who(message['rank'])} gave no sign of life for {message['seconds']:g} s{stopped}"
            )
        elif say == "refused":
            self._blame(f"{self._who(message['rank'])} could not be started ({message['why']})")

    def _blame(self, line: str) -> None:
        self._lost = self._lost or line
        self._fault_at = self._fault_at or time.monotonic()

    def _who(self, rank: int) -> str:
        place = self.places[rank]
        return f"worker {rank}" + (f" on {place}" if len(self.shares) > 1 else "")

    def _look_for_silent_machines(self) -> None:
        now = time.monotonic()
        gap, self._looked_at = now - self._looked_at, now
        late = gap if gap > _LATE_S else 0.0
        silent = self._crew.silent(self.names, self._limits.heartbeat_s, late)
        if silent is not None:
            self._crew.drop(silent)
            self._blame(f"{silent} gave no sign of life for {self._limits.heartbeat_s:g} s")

    def _ending(self) -> Ending | None:
        now = time.monotonic()
        over = len(self._ended) == len(self.places) or (self._ends_at is not None and now > self._ends_at)
        statuses = set(self._ended.values())
        if self._told:
            return self._as_told(statuses) if over else None
        if self._asked:
            return Ending("changed", "other machines are to be used") if over else None
        if self._fault_at is not None and (over or now > self._fault_at + _BLAME_S):
            return self._fault()
        if over and statuses == {0}:
            return Ending("done")
        if over:
            return Ending("preempted", "the workers were preempted", PREEMPTED)
        line = self._arrivals.find_overdue(now, self._ended)
        if line is not None:
            return Ending("fault", line, 1)
        wait = self._arrivals.describe_wait(now, self._ended)
        if wait is not None:
            self._tell_user(wait)
        return None

    def _as_told(self, statuses: set[int]) -> Ending:
        if len(self._ended) < len(self.places) or statuses - {0, PREEMPTED}:
            return told_to_end(self._told)
        if PREEMPTED in statuses:
            return Ending("told", "the workers have saved and left", PREEMPTED)
        return Ending("done")

    def _fault(self) -> Ending:
        if self._lost is not None:
            return Ending("fault", self._lost, 1)
        faults = {rank: status for rank, status in self._ended.items() if status not in (0, PREEMPTED)}
        # Peers of a worker that was killed end with an exit code, over an error of their own.
        rank = min(faults, key=lambda rank: (faults[rank] > 0, list(faults).index(rank)))
        return Ending("fault", f"{self._who(rank)} {_how(faults[rank])}", exit_code_of(faults[rank]))


def told_to_end(told: list[int]) -> Ending:
    """The ending of a job that was told to, and saved nothing."""
    return Ending("told", f"ended by {signal.Signals(told[0]).name}", 128 + told[0])


def _how(status: int) -> str:
    if status > 0:
        return f"ended with exit code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
