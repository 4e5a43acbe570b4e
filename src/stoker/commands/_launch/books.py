"""The ledger of a job, from the records its workers left."""

from __future__ import annotations

import sys

from stoker.diagnosis.jobs import job_record
from stoker.errors import RecordError
from stoker.records import Record
from stoker.report import console
from stoker.store import record_files


def close(job: str, ranks: list[int], exit_code: int, restarts: int) -> None:
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
    made = job_record(f"{job}-job", found, exit_code, restarts)
    path = record_files.path_of(made.id)
    record_files.write(made, path)
    console.show(made, path)
