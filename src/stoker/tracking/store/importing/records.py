"""The records of measured runs, `.stoker/runs/*.json`: what was there before the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stoker.errors import RecordError
from stoker.tracking.store import measured, record_files
from stoker.tracking.store.importing.foreign import Foreign


def runs(directory: Path, damaged: list[str]) -> Iterator[Foreign]:
    """The records of a directory; what is wrong with those that cannot be read goes to `damaged`."""
    for run in record_files.ids(directory):
        path = record_files.path_of(run, directory)
        try:
            record = record_files.read(path)
        except RecordError as error:
            damaged.append(str(error))
            continue
        if not record_files.is_id(record.id):
            damaged.append(
                f"the record {path} has the id {record.id!r}, which no run can have: it was not imported"
            )
            continue
        started = measured.started_at(record)
        columns = {
            **measured.columns(record),
            "name": record.program,
            "kind": "run",
            "program": record.program,
            "arguments": record.argv,
            "state": "failed" if record.exit_code else record.state,
            "started": started,
            "ended": started + record.wall_s,
            "seen": started + record.wall_s,
        }
        yield Foreign(record.id, str(path), columns, more=measured.measurements(record))
