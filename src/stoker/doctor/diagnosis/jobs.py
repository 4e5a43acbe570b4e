"""The record of a job, from those of its workers: who waits for whom, and what holds all up.

An exchange ends for all workers at about the same time, and begins for each when it gets there. So the worker that was
last in it took only as long as the exchange itself; whatever longer the others took is waiting. No clocks are compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from stoker.doctor.stall import stalls
from stoker.doctor.stalls.straggler import STALL as STRAGGLER
from stoker.records import ACCOUNTS, Detail, Finding, Record, Tables, WorkerRow

# Of the time in which a job steps, what waiting for one worker must take to be a finding.
_MIN_SHARE = 0.05
# What differs between workers for other reasons than being slow.
_NOT_BLAMED = ("startup", "communication")


def job_record(
    id: str, workers: Mapping[int, Record], exit_code: int, restarts: int, more: Sequence[Finding] = ()
) -> Record:
    """The job as one run: its accounts are the mean worker's, its findings those of all, its examples the sum."""
    ranks = sorted(workers)
    chief = workers[ranks[0]]
    rows = worker_rows(workers)
    found = [*stragglers(workers, rows), *_merged(workers), *more]
    examples = [r.examples_per_s for r in workers.values() if r.examples_per_s is not None]
    return dataclasses.replace(
        chief,
        id=id,
        exit_code=exit_code,
        wall_s=round(fmean(r.wall_s for r in workers.values()), 6),
        examples_per_s=round(sum(examples), 3) if examples else None,
        accounts={
            name: round(fmean(r.accounts.get(name, 0.0) for r in workers.values()), 6) for name in ACCOUNTS
        },
        findings=sorted(found, key=lambda finding: -(finding.lost_s or 0.0)),
        tables=Tables(workers=rows),
        # What is replayed is one worker's.
        timeline=None,
        what_if=None,
        environment={**chief.environment, "workers": len(workers), "restarts": restarts},
        notes=list(dict.fromkeys(note for rank in ranks for note in workers[rank].notes)),
    )


def worker_rows(workers: Mapping[int, Record]) -> list[WorkerRow]:
    """A row a worker. The least that any of them exchanged for, a step, is the exchange itself."""
    least = min(_exchanged_a_step(record) for record in workers.values())
    rows = []
    for rank in sorted(workers):
        record = workers[rank]
        whole = record.accounts.get("communication", 0.0)
        itself = min(whole, least * record.steps)
        rows.append(
            WorkerRow(
                rank=rank,
                run=record.id,
                wall_s=record.wall_s,
                steps=record.steps,
                steps_per_s=record.steps_per_s,
                exit_code=record.exit_code,
                accounts=dict(record.accounts),
                waiting_s=round(whole - itself, 6),
                exchange_s=round(itself, 6),
            )
        )
    return rows


def stragglers(workers: Mapping[int, Record], rows: list[WorkerRow]) -> list[Finding]:
    """The worker that waits least, if the others wait much for it."""
    if len(rows) < 2:
        return []
    slow = min(rows, key=lambda row: (row.waiting_s, row.rank))
    others = [row for row in rows if row is not slow]
    lost = fmean(row.waiting_s for row in others)
    record = workers[slow.rank]
    phase = record.tables.stepping_phase
    if lost < _MIN_SHARE * (phase.seconds if phase else record.wall_s):
        return []
    account, longer = _longer(record, [workers[row.rank] for row in others])
    cause = next((f for f in record.findings if stalls()[f.kind].account == account), None)
    remedy = f"Worker {slow.rank} spends {longer:.2f} s more on {account} than the others: begin there."
    made = STRAGGLER.finding(
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
        detail=Detail(worker=slow.rank, account=account),
    )
    return [made]


def _longer(slow: Record, others: list[Record]) -> tuple[str, float]:
    """The account on which it spends most beyond what the others do."""
    own, theirs = _own_work(slow), [_own_work(other) for other in others]
    beyond = {
        name: own.get(name, 0.0) - median(work.get(name, 0.0) for work in theirs)
        for name in ACCOUNTS
        if name not in _NOT_BLAMED
    }
    account = max(beyond, key=lambda name: beyond[name])
    return account, beyond[account]


def _own_work(record: Record) -> dict[str, float]:
    """What a worker does between two exchanges, while it steps: start-up and the end differ for other reasons.

    Inside compiled functions all but the exchange is on `compute`: how the rest of it divides is known too roughly.
    """
    phase, windows = record.tables.stepping_phase, record.tables.sums
    if phase is None:
        return record.accounts
    exchanging = windows.graph_communication_ns / windows.graph_ns if windows.graph_ns else 0.0
    work = {name: seconds for name, seconds in phase.accounts.items() if name in ACCOUNTS}
    inside = phase.accounts.get("graph", 0.0) * (1 - exchanging) + phase.accounts.get("eager", 0.0)
    return work | {"compute": work.get("compute", 0.0) + inside}


def _exchanged_a_step(record: Record) -> float:
    return record.accounts.get("communication", 0.0) / record.steps if record.steps else 0.0


def _merged(workers: Mapping[int, Record]) -> list[Finding]:
    """One of each kind and line: the costliest, with the workers it was found on."""
    best: dict[tuple[str, str, int], tuple[Finding, list[int]]] = {}
    for rank in sorted(workers):
        for finding in workers[rank].findings:
            key = (finding.kind, finding.file, finding.line)
            known, ranks = best.get(key, (finding, []))
            costlier = (finding.lost_s or 0.0) > (known.lost_s or 0.0)
            # One worker may have it twice: two functions at one line.
            best[key] = (finding if costlier else known, ranks if rank in ranks else [*ranks, rank])
    merged = []
    for finding, ranks in best.values():
        detail = Detail(**finding.detail)
        detail["workers"] = ranks
        merged.append(dataclasses.replace(finding, detail=detail))
    return merged
