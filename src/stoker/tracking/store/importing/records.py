"""Import the records of measured runs, `.stoker/runs/*.json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stoker.errors import RecordError
from stoker.tracking.store import measured, record_files
from stoker.tracking.store.importing.imported_run import ImportedRun


def read_runs(directory: Path, damaged: list[str]) -> Iterator[ImportedRun]:
    """Read the records of a directory. For each record that cannot be read, `damaged` gets a line."""
    for run in record_files.ids(directory):
        path = record_files.path_of(run, directory)
        try:
            record = record_files.read(path)
        except RecordError as error:
            damaged.append(str(error))
            continue
        if not record_files.is_id(record.id):
            damaged.append(f"the record {path} has the invalid id {record.id!r}: it was not imported")
            continue
        started = measured.find_start(record)
        columns = {
            **measured.to_columns(record),
            "name": record.program,
            "kind": "run",
            "program": record.program,
            "arguments": record.argv,
            "state": measured.name_state(record),
            "started": started,
            "ended": started + record.wall_s,
            "seen": started + record.wall_s,
        }
        yield ImportedRun(record.id, str(path), columns, more=measured.to_events(record))
