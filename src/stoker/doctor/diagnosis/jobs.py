"""The record of a job, made from the records of its workers: which worker waits for which.

An exchange ends for all workers at about the same time, but begins for each when it arrives. So the last worker to
arrive takes only as long as the exchange itself; whatever the others take beyond that is waiting. No clocks are
compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from statistics import fmean

from stoker.doctor.stall import stalls
from stoker.records import ACCOUNTS, Detail, Finding, FindingKey, Record, Tables, WorkerRow


def job_record(
    id: str, workers: Mapping[int, Record], exit_code: int, restarts: int, more: Sequence[Finding] = ()
) -> Record:
    """Return the job as one run: the workers' mean accounts, all their findings, and the sum of their examples."""
    ranks = sorted(workers)
    chief = workers[ranks[0]]
    rows = worker_rows(workers)
    seen = [finding for stall in stalls().values() for finding in stall.find_in_job(workers, rows)]
    found = [*seen, *_merge_findings(workers), *more]
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
        # Only a single worker can be replayed.
        timeline=None,
        what_if=None,
        environment={**chief.environment, "workers": len(workers), "restarts": restarts},
        notes=list(dict.fromkeys(note for rank in ranks for note in workers[rank].notes)),
    )


def worker_rows(workers: Mapping[int, Record]) -> list[WorkerRow]:
    """Return one row per worker. The shortest exchange time per step of any worker counts as the exchange itself."""
    least = min(_exchange_per_step(record) for record in workers.values())
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


def _exchange_per_step(record: Record) -> float:
    return record.accounts.get("communication", 0.0) / record.steps if record.steps else 0.0


def _merge_findings(workers: Mapping[int, Record]) -> list[Finding]:
    """Return one finding of each kind and line: the costliest, with the workers it was found on."""
    best: dict[FindingKey, tuple[Finding, list[int]]] = {}
    for rank in sorted(workers):
        for finding in workers[rank].findings:
            known, ranks = best.get(finding.key, (finding, []))
            costlier = (finding.lost_s or 0.0) > (known.lost_s or 0.0)
            # One worker may have the finding twice, if two functions share a line.
            best[finding.key] = (finding if costlier else known, ranks if rank in ranks else [*ranks, rank])
    merged = []
    for finding, ranks in best.values():
        detail = Detail(**finding.detail)
        detail["workers"] = ranks
        merged.append(dataclasses.replace(finding, detail=detail))
    return merged
