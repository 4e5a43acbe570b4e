"""One worker is slower than the others, and all wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

from stoker.doctor.stall import Stall, stalls

if TYPE_CHECKING:
    from stoker.records import Finding, Record, WorkerRow

# The share of a job's stepping time that waiting for one worker must take to be a finding.
_MIN_SHARE = 0.05
# Accounts that differ between workers for other reasons than being slow.
_NOT_BLAMED = ("startup", "communication")


class Straggler(Stall):
    """A worker that all others wait for."""

    slug = "straggler"
    code = "STK601"
    account = "communication"
    title = "One worker is slower than the others, and all wait for it"
    remedy = "Find out why it takes longer: its input, its machine, or work that only the chief does."
    why = "An exchange ends when the last worker arrives, so all the others wait for the slowest."

    def find_in_job(self, workers: Mapping[int, Record], rows: Sequence[WorkerRow]) -> Iterator[Finding]:
        """Report the worker that waits least, if the others wait long for it."""
        if len(rows) < 2:
            return
        slow = min(rows, key=lambda row: (row.waiting_s, row.rank))
        others = [row for row in rows if row is not slow]
        lost = fsum(row.waiting_s for row in others) / len(others)
        record = workers[slow.rank]
        phase = record.tables.stepping_phase
        if lost < _MIN_SHARE * (phase.seconds if phase else record.wall_s):
            return
        account, longer = _find_longer_account(record, [workers[row.rank] for row in others])
        cause = next((f for f in record.findings if stalls()[f.kind].account == account), None)
        remedy = f"Worker {slow.rank} spends {longer:.2f} s more on {account} than the others: begin there."
        yield self.finding(
            file=cause.file if cause else record.program,
            line=cause.line if cause else 1,
            column=cause.column if cause else None,
            function=cause.function if cause else "",
            source=cause.source if cause else "",
            remedy=remedy if longer > 0 else None,
            count=slow.steps,
            seconds=round(lost, 6),
            wait_s=round(lost, 6),
            lost_s=round(lost, 6),
            detail={"worker": slow.rank, "account": account},
        )


def _find_longer_account(slow: Record, others: list[Record]) -> tuple[str, float]:
    """Return the account on which the slow worker exceeds the others most, and the seconds by which it does."""
    # Imported only once a job has ended: `stoker check` loads this module and must start quickly.
    from statistics import median

    from stoker.records import ACCOUNTS

    own, theirs = _own_work(slow), [_own_work(other) for other in others]
    beyond = {
        name: own.get(name, 0.0) - median(work.get(name, 0.0) for work in theirs)
        for name in ACCOUNTS
        if name not in _NOT_BLAMED
    }
    account = max(beyond, key=lambda name: beyond[name])
    return account, beyond[account]


def _own_work(record: Record) -> dict[str, float]:
    """Return a worker's own work between exchanges while it steps, since start-up and shutdown may differ anyway.

    Inside compiled functions, everything but the exchange counts as `compute`: a finer split would be too rough.
    """
    phase, windows = record.tables.stepping_phase, record.tables.sums
    if phase is None:
        return record.accounts
    exchanging = windows.graph_communication_ns / windows.graph_ns if windows.graph_ns else 0.0
    work = phase.accounts
    inside = work.get("graph", 0.0) * (1 - exchanging) + work.get("eager", 0.0)
    return work | {"compute": work.get("compute", 0.0) + inside}


STALL = Straggler()
