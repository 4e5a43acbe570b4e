"""The rounds of a job until it is done: after a fault, all workers are ended and started again.

A fault counts against `max_restarts`. A preemption (all workers saved the same step and left with exit code 75) and a
change of machines do not. If a restart would end in the same error, the job ends at once (`hopeless`).
"""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager
from types import FrameType

from stoker.errors import StokerError
from stoker.goodput.diary import JobDiary
from stoker.launch.crew import Crew
from stoker.launch.discovery import Discovery
from stoker.launch.events import EventQueue, SignalReceived
from stoker.launch.hopeless import RoundErrors, is_hopeless
from stoker.launch.hosts import Host, share_out
from stoker.launch.job import LaunchJob
from stoker.launch.limits import LaunchLimits
from stoker.launch.messages import WorkerEvents, WorkerOutput
from stoker.launch.plan import LaunchPlan
from stoker.launch.round import Ending, Round, end_unsaved
from stoker.launch.view import JobView
from stoker.signals import handle_signals
from stoker.units import quantity

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
# Workers get SIGTERM instead of those that would kill them before they save: SIGUSR1, which SLURM sends as a warning
# (`--signal=USR1@60`), and SIGHUP, which a terminal sends when it is closed.
_PASSED_ON_AS = {signal.SIGUSR1: signal.SIGTERM, signal.SIGHUP: signal.SIGTERM}
# How long an elastic job waits for a machine: its other machines must not wait for one that may be gone for good.
_ELASTIC_WAIT_S = 15.0
# If workers are preempted again and again right after they start, restart them more and more slowly.
_SHORT_ROUND_S, _LONGEST_PAUSE_S = 10.0, 60.0


class LaunchError(StokerError):
    """The job cannot start, or cannot continue: a machine does not answer, or too few are left."""

    exit_code = 1


class Supervisor:
    """One job on the machines of its plan."""

    def __init__(self, job: LaunchJob, plan: LaunchPlan, limits: LaunchLimits, view: JobView) -> None:
        self._job, self._plan, self._limits, self._view = job, plan, limits, view
        self._hosts = plan.hosts
        self._inbox = EventQueue()
        self._crew = Crew(plan.connect, self._inbox, self._keep)
        self._diary = JobDiary(view.directory, job.restarts, job.place.rank if job.place else None)
        self._round: Round | None = None
        self._errors = RoundErrors()
        self.restarts = 0
        self._short_rounds = 0

    @property
    def ranks(self) -> list[int]:
        """The ranks of the last round."""
        return list(self._round.machines) if self._round else []

    def run(self) -> int:
        """Run the job to its end; return its exit code.

        Raises:
            LaunchError: the job cannot start, or cannot continue.
        """
        command = self._plan.discover
        discovery = Discovery(command, self._inbox, self._hosts) if command else None
        code = 1
        try:
            with self._receive_signals():
                code = self._run_rounds()
                return code
        finally:
            self._diary.end_job(done=code == 0)
            if discovery is not None:
                discovery.close()
            self._crew.close()
            self._view.close()

    def _run_rounds(self) -> int:
        faults = 0
        before: str | None = None
        while True:
            ending = self._run_round()
            if ending.kind == "done":
                return 0
            if ending.kind == "interrupted":
                self._view.announce(ending.line)
                return ending.code
            faults += ending.kind == "fault"
            error = self._errors.find_error(ending.rank, ending.code)
            if error is not None and is_hopeless(self.restarts, self._errors, error, before):
                self._view.announce(
                    f"{ending.line}; not restarting, as it would end the same way again: {error}"
                )
                return ending.code
            before = None if self._errors.has_trained else error
            if faults > self._limits.max_restarts:
                after = f" after {faults - 1} restart{'s' * (faults > 2)}" if faults > 1 else ""
                self._view.announce(f"{ending.line}; giving up{after}")
                return ending.code
            count = f" ({faults} of {self._limits.max_restarts})" if ending.kind == "fault" else ""
            self._view.announce(f"{ending.line}; restarting all workers{count}")
            self.restarts += 1
            self._slow_down(ending)

    def _run_round(self) -> Ending:
        shares = self._share_out_workers()
        received = self._inbox.find_signal()
        if received is not None:
            return end_unsaved(received)
        number, before = self.restarts, self._round.shares if self._round else None
        this = self._round = Round(
            self._crew,
            self._job,
            self._limits,
            number,
            self._hosts,
            shares,
            self._view.announce,
            self._diary,
        )
        self._errors = RoundErrors()
        self._view.begin(list(this.machines), number)
        self._diary.begin_round(number, list(this.machines))
        ending = Ending("interrupted")
        try:
            wrong = this.start()
            if wrong is not None:
                ending = Ending("fault", wrong, 1)
                return ending
            if number == 0 or shares != before:
                self._view.announce(self._describe(this))
            ending = this.watch(self._take_hosts)
            return ending
        finally:
            this.end()
            self._diary.end_round(number, ending.kind, ending.line)

    def _describe(self, started: Round) -> str:
        count, machines = len(started.machines), len(started.names)
        where = f" on {machines} machines" if machines > 1 else ""
        return f"job {self._job.id}: {count} worker{'s' * (count > 1)}{where}, logs in {self._view.directory}"

    def _share_out_workers(self) -> dict[str, int]:
        """Connect to the machines; return the number of workers for each machine that answers."""
        size = self._plan.size
        is_elastic_restart = size.is_elastic and self.restarts
        limit_s = min(self._limits.start_s, _ELASTIC_WAIT_S) if is_elastic_restart else self._limits.start_s
        for name, why in self._crew.meet(self._hosts, limit_s).items():
            if not size.is_elastic:
                raise LaunchError(f"cannot reach {name}: {why}")
            self._view.announce(f"cannot reach {name}: {why}")
        reached = [host for host in self._hosts if host.name in self._crew]
        shares = share_out(reached, size)
        if shares is None and self._inbox.find_signal() is None:
            room = sum(host.slots or 0 for host in reached)
            raise LaunchError(
                f"the job needs {quantity(size.least, 'worker')}, but the machines have room for {room}"
            )
        return shares or {}

    def _take_hosts(self, hosts: list[Host]) -> bool:
        """Use other machines from the next round on; return whether that is worth a restart."""
        shares = share_out(hosts, self._plan.size)
        if shares is None:
            self._view.announce(
                f"the machines that --discover prints have no room for {quantity(self._plan.size.least, 'worker')}; "
                "keeping the current ones"
            )
            return False
        self._hosts = hosts
        return self._round is not None and shares != self._round.shares

    def _keep(self, report: WorkerOutput | WorkerEvents) -> None:
        """Keep a worker's output or events."""
        if isinstance(report, WorkerEvents):
            self._errors.read_events(report.lines)
            self._diary.add_events(report.round, report.rank, report.lines)
        else:
            self._show_output(report)

    def _show_output(self, output: WorkerOutput) -> None:
        self._view.show(output.rank, output.stream, output.lines)
        if output.stream == "stderr":
            self._errors.read_output(output.rank, output.lines)

    def _slow_down(self, ending: Ending) -> None:
        """Wait longer and longer before restarting workers that never get far."""
        assert self._round is not None
        is_short = ending.kind == "preempted" and self._round.seconds < _SHORT_ROUND_S
        self._short_rounds = self._short_rounds + 1 if is_short else 0
        if self._short_rounds > 1:
            self._crew.pause(min(2.0**self._short_rounds, _LONGEST_PAUSE_S))

    def _receive_signals(self) -> AbstractContextManager[None]:
        def note(number: int, frame: FrameType | None) -> None:
            received = signal.Signals(number)
            self._inbox.put(SignalReceived(_PASSED_ON_AS.get(received, received)))

        # `nohup` has SIGHUP ignored, and it stays so.
        ignores_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        heard = [one for one in _PASSED_ON if not (ignores_hangup and one == signal.SIGHUP)]
        return handle_signals(heard, note)
