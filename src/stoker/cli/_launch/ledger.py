"""The ledger of a job, from the records of its workers."""

from __future__ import annotations

from pathlib import Path

from stoker.doctor.attach.sites import shown_path
from stoker.doctor.check.checker import check_paths
from stoker.doctor.diagnosis.jobs import job_record
from stoker.doctor.measure.launch import Target
from stoker.doctor.report import console, goodput
from stoker.doctor.stalls.unscaled_batch import STALL as UNSCALED_BATCH
from stoker.errors import RecordError, UsageError
from stoker.goodput.fold import fold
from stoker.goodput.history import read_history
from stoker.goodput.ledger import Price
from stoker.printing import print_note
from stoker.records import Finding, Record
from stoker.tracking.store import record_files


def close(job: str, target: Target, ranks: list[int], exit_code: int, restarts: int) -> None:
    """Make the record of the job, save it and show it.

    Records of workers on machines that do not share this file system stay on those machines.
    """
    found: dict[int, Record] = {}
    for rank in ranks:
        try:
            found[rank] = record_files.read(record_files.path_of(f"{job}-{rank}"))
        except RecordError as error:
            print_note(f"worker {rank} left no record here: {error}")
    if not found:
        return
    unscaled = find_unscaled_batches(target) if len(found) > 1 else []
    made = job_record(f"{job}{record_files.OF_JOB}", found, exit_code, restarts, unscaled)
    path = record_files.path_of(made.id)
    record_files.write(made, path)
    console.show(made, path)


def show_goodput(directory: Path, price: Price | None) -> None:
    """Show where the time of the job went, over all its restarts."""
    try:
        history = read_history(directory)
    except UsageError as error:
        print_note(str(error))
        return
    goodput.show(fold(directory.name, history), price)


def find_unscaled_batches(target: Target) -> list[Finding]:
    """Find batches that are not scaled in the program's source, since no run can measure it."""
    if target.is_module:
        return []
    return [
        UNSCALED_BATCH.finding(
            file=shown_path(problem.file),
            line=problem.line,
            column=problem.column,
            function="",
            source=problem.source.strip(),
            evidence="static",
        )
        for problem in check_paths([target.name], jobs=1).problems
        if problem.kind == UNSCALED_BATCH.slug
    ]
