"""Find the record that a command names, and say what to do about a run that has none."""

from __future__ import annotations

from pathlib import Path

from stoker.errors import RecordError
from stoker.tracking.store import address, record_files
from stoker.tracking.store.queries import open_reader


def find_record(name: str | None) -> Path:
    """Find a record by the run's id, a unique start of it, or a file name; the last record if None.

    Raises:
        RecordError: there is no such record, or several; or the store has the run, but it left no record.
    """
    try:
        return record_files.resolve(name)
    except RecordError:
        if name is None or any(known.startswith(name) for known in record_files.ids()):
            raise
        kind = _find_kind(name)
        if kind is None:
            raise
    raise RecordError(
        f"run {name} is of kind {kind!r} and has no ledger, since only programs under `stoker run` leave one: "
        f"`stoker runs show {name}` shows it, and `stoker runs diff A B` compares any two runs"
    )


def _find_kind(name: str) -> str | None:
    """Return the kind of the run in the default store whose id starts with this; None if there is none, or several."""
    usual = address.find()
    if usual is None or (usual.path is not None and not usual.path.exists()):
        return None
    with open_reader(usual) as reader:
        try:
            return reader.run(reader.resolve(name)).kind
        except RecordError:
            return None
