"""One round of a job: all workers start together. The round ends when all of them have ended or one is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stoker.doctor.measure.supervise import exit_code_of
from stoker.goodput.diary import JobDiary
from stoker.launch.arrivals import Arrivals
from stoker.launch.crew import Crew
from stoker.launch.events import (
    AgentEvent,
    AgentGone,
    DiscoveryFailed,
    HostsChanged,
    JobEvent,
    SignalReceived,
)
from stoker.launch.hosts import Host
from stoker.launch.job import LaunchJob
from stoker.launch.limits import PREEMPTED, LaunchLimits
from stoker.launch.messages import (
    FindPorts,
    KillWorkers,
    PortsFound,
    SendSignal,
    StartWorkers,
    WorkerExited,
    WorkerJoined,
    WorkerRefused,
    WorkerReport,
    WorkerSilent,
    WorkersKilled,
    WorkerStart,
    WorkerStarted,
)

_TICK_S = 0.2
# When one worker dies, its peers fail at once as a result; only a little later is it known which one died first.
_BLAME_S = 0.5
# A longer gap between two ticks means that the supervisor itself was stopped.
_LATE_S = 1.0
# An agent that does not confirm the death of its workers within this time does not answer at all.
_KILL_S = 5.0


@dataclass(frozen=True)
class Ending:
    """The way a round ended: a line for the user, the exit code if the job ends too, and the worker that failed."""

    kind: Literal["done", "preempted", "fault", "interrupted", "rescaled"]
    line: str = ""
    code: int = 0
    rank: int | None = None


class Round:
    """All workers, started together; `shares` gives the number of workers on each machine, in the order of ranks."""

    def __init__(
        self,
        crew: Crew,
        job: LaunchJob,
        limits: LaunchLimits,
        number: int,
        hosts: list[Host],
        shares: dict[str, int],
        announce: Callable[[str], None],
        diary: JobDiary,
    ) -> None:
        self._diary = diary
        self._crew, self._job, self._limits, self.number, self._announce = crew, job, limits, number, announce
        self._hosts = {host.name: host for host in hosts}
        self.shares = shares
        self.names = list(shares)
        # The machine of each rank. If a scheduler starts the workers, only one runs here, and it may have any rank.
        first = job.place.rank if job.place else 0
        machines = [name for name, count in shares.items() for _ in range(count)]
        self.machines = dict(enumerate(machines, first))
        addresses = dict(enumerate(job.place.addresses)) if job.place else {}
        peers = {rank: address for rank, address in addresses.items() if rank not in self.machines}
        self._arrivals = Arrivals(self.machines, peers, limits.start_s, self._describe)
        self._statuses: dict[int, int] = {}
        self._signal: SignalReceived | None = None
        self._is_rescaling = False
        # When workers that were asked to stop must have ended; then the first fault, and when it happened.
        self._ends_at: float | None = None
        self._fault: str | None = None
        self._fault_at: float | None = None
        self._started_at = self._ticked_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started_at

    def start(self) -> str | None:
        """Start all workers on fresh ports; return what went wrong, or None."""
        ports = self._choose_ports()
        if ports is None:
            return f"no free ports: an agent did not answer within {self._limits.start_s:g} s"
        addresses = (
            self._job.place.addresses
            if self._job.place
            else [f"{self._hosts[name].address}:{ports[rank]}" for rank, name in self.machines.items()]
        )
        for name in self.names:
            workers = [
                WorkerStart(
                    rank, ports[rank], self._job.build_worker_environment(rank, addresses, self.number)
                )
                for rank, machine in self.machines.items()
                if machine == name
            ]
            command = StartWorkers(
                round=self.number,
                directory=self._job.directory,
                arguments=self._job.arguments,
                environment=self._job.build_shared_environment(),
                heartbeat=self._limits.heartbeat_s,
                door=not self._job.ledger,
                standby=self._job.standby,
                workers=workers,
            )
            self._crew.send([name], command)
        self._started_at = self._ticked_at = time.monotonic()
        self._arrivals.restart_clock()
        return None

    def _choose_ports(self) -> dict[int, int] | None:
        """Return the port of each worker that starts here; None if an agent does not answer."""
        if self._job.place is not None:
            return {self._job.place.rank: self._job.place.port}
        for name, count in self.shares.items():
            self._crew.send([name], FindPorts(count))
        found = self._crew.gather(self.names, PortsFound, self._limits.start_s)
        if len(found) < len(self.names):
            return None
        return dict(enumerate(port for name in self.names for port in found[name].ports))

    def watch(self, wants_restart: Callable[[list[Host]], bool]) -> Ending:
        """Wait until the round is over; `wants_restart` says whether a change of machines is worth a restart."""
        while True:
            event = self._crew.listen(_TICK_S)
            if event is not None:
                self._handle(event, wants_restart)
            self._check_silent_machines()
            ending = self._find_ending()
            if ending is not None:
                return ending

    def end(self) -> None:
        """Kill all remaining workers; drop a machine that does not confirm."""
        self._arrivals.close()
        self._crew.send(self.names, KillWorkers())
        confirmed = self._crew.gather(self.names, WorkersKilled, _KILL_S)
        for name in set(self.names) - set(confirmed):
            self._crew.drop(name)

    def _handle(self, event: JobEvent, wants_restart: Callable[[list[Host]], bool]) -> None:
        match event:
            case AgentEvent(host, _, AgentGone()) if host in self.shares:
                self._crew.drop(host)
                why = self._crew.get_complaint(host)
                self._blame(f"lost the agent on {host}" + (f" ({why})" if why else ""))
            case AgentEvent(report=WorkerReport() as report) if report.round == self.number:
                self._handle_report(report)
            case SignalReceived() if self._signal is None:
                self._signal = event
                self._ask_to_stop(event.number)
            case SignalReceived():
                # A second signal means that the user does not want to wait.
                self._ends_at = time.monotonic()
            case HostsChanged(hosts) if wants_restart(hosts):
                self._ask_to_stop(signal.SIGTERM)
                self._is_rescaling = True
            case DiscoveryFailed(why):
                self._announce(f"{why}; keeping the current machines")

    def _ask_to_stop(self, number: int) -> None:
        self._crew.send(self.names, SendSignal(number))
        self._ends_at = time.monotonic() + self._limits.grace_s

    def _handle_report(self, report: WorkerReport) -> None:
        match report:
            case WorkerStarted():
                self._arrivals.note_start(report.rank)
            case WorkerJoined():
                self._arrivals.note_join(report.rank)
            case WorkerExited():
                self._note_exit(report.rank, report.status)
            case WorkerSilent():
                self._note_silence(report)
            case WorkerRefused():
                self._blame(f"{self._describe(report.rank)} could not be started ({report.why})")

    def _note_exit(self, rank: int, status: int) -> None:
        now = time.monotonic()
        self._statuses[rank] = status
        self._diary.note_end_of_worker(self.number, rank)
        if status == PREEMPTED:
            self._ends_at = self._ends_at or now + self._limits.grace_s
        elif status:
            self._fault_at = self._fault_at or now

    def _note_silence(self, report: WorkerSilent) -> None:
        may_wait = self._arrivals.may_be_silent(report.seconds, self._limits.heartbeat_s, time.monotonic())
        if report.stopped or not may_wait:
            stopped = "; its process is stopped" if report.stopped else ""
            self._blame(f"{self._describe(report.rank)} sent no heartbeat for {report.seconds:g} s{stopped}")

    def _blame(self, line: str) -> None:
        self._fault = self._fault or line
        self._fault_at = self._fault_at or time.monotonic()

    def _describe(self, rank: int) -> str:
        return f"worker {rank}" + (f" on {self.machines[rank]}" if len(self.shares) > 1 else "")

    def _check_silent_machines(self) -> None:
        now = time.monotonic()
        gap_s, self._ticked_at = now - self._ticked_at, now
        late_s = gap_s if gap_s > _LATE_S else 0.0
        silent = self._crew.find_silent(self.names, self._limits.heartbeat_s, late_s)
        if silent is not None:
            self._crew.drop(silent)
            self._blame(f"{silent} sent no heartbeat for {self._limits.heartbeat_s:g} s")

    def _find_ending(self) -> Ending | None:
        now = time.monotonic()
        is_over = len(self._statuses) == len(self.machines) or (
            self._ends_at is not None and now > self._ends_at
        )
        if self._signal is not None:
            return self._end_after_signal(self._signal) if is_over else None
        if self._is_rescaling:
            return Ending("rescaled", "the available machines have changed") if is_over else None
        if self._fault_at is not None and (is_over or now > self._fault_at + _BLAME_S):
            return self._end_after_fault()
        if is_over and set(self._statuses.values()) == {0}:
            return Ending("done")
        if is_over:
            return Ending("preempted", "the workers were preempted", PREEMPTED)
        overdue = self._arrivals.find_overdue(now, self._statuses)
        if overdue is not None:
            return Ending("fault", overdue, 1)
        wait = self._arrivals.describe_wait(now, self._statuses)
        if wait is not None:
            self._announce(wait)
        return None

    def _end_after_signal(self, received: SignalReceived) -> Ending:
        statuses = set(self._statuses.values())
        if len(self._statuses) < len(self.machines) or statuses - {0, PREEMPTED}:
            return end_unsaved(received)
        if PREEMPTED in statuses:
            line = "the workers saved and exited; run the same command again to continue"
            return Ending("interrupted", line, PREEMPTED)
        return Ending("done")

    def _end_after_fault(self) -> Ending:
        if self._fault is not None:
            return Ending("fault", self._fault, 1)
        faults = {rank: status for rank, status in self._statuses.items() if status not in (0, PREEMPTED)}
        # When a worker is killed, its peers exit with an error of their own. So a signal takes precedence over an exit
        # code.
        rank = min(faults, key=lambda rank: (faults[rank] > 0, list(faults).index(rank)))
        line = f"{self._describe(rank)} {_describe_status(faults[rank])}"
        return Ending("fault", line, exit_code_of(faults[rank]), rank)


def end_unsaved(received: SignalReceived) -> Ending:
    """Return the ending of a job that was stopped by a signal and saved nothing."""
    return Ending("interrupted", f"ended by {signal.Signals(received.number).name}", 128 + received.number)


def _describe_status(status: int) -> str:
    if status > 0:
        return f"ended with exit code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
