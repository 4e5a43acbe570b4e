"""The ledger of a job, from the records its workers left."""

from __future__ import annotations

import sys

from stoker.doctor.attach.sites import shown_path
from stoker.doctor.check.checker import check_paths
from stoker.doctor.diagnosis.jobs import job_record
from stoker.doctor.measure.launch import Target
from stoker.doctor.report import console
from stoker.errors import RecordError
from stoker.kinds import KINDS
from stoker.records import Finding, Record
from stoker.tracking.store import record_files


def close(job: str, target: Target, ranks: list[int], exit_code: int, restarts: int) -> None:
    """Make the record of the job, save it and show it.

    What workers on machines without this file system have measured stays there.
    """
    found: dict[int, Record] = {}
    for rank in ranks:
        try:
            found[rank] = record_files.read(record_files.path_of(f"{job}-{rank}"))
        except RecordError as error:
            print(f"stoker: worker {rank} left no ledger here: {error}", file=sys.stderr)
    if not found:
        return
    made = job_record(
        f"{job}{record_files.OF_JOB}", found, exit_code, restarts, unscaled(target) if len(found) > 1 else []
    )
    path = record_files.path_of(made.id)
    record_files.write(made, path)
    console.show(made, path)


def unscaled(target: Target) -> list[Finding]:
    """`unscaled-batch`, which no run can see: what the program's source says of its batch."""
    if target.is_module:
        return []
    kind = KINDS["unscaled-batch"]
    return [
        Finding(
            kind=kind.slug,
            code=kind.code,
            file=shown_path(problem.file),
            line=problem.line,
            column=problem.column,
            function="",
            source=problem.source.strip(),
            title=kind.title,
            remedy=kind.remedy,
            evidence="static",
        )
        for problem in check_paths([target.name], jobs=1).problems
        if problem.kind == kind.slug
    ]
