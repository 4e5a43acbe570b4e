"""Taking a run out of the store: its row, values, ledger, findings, links, and its record; never its audit."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from stoker.store import audit, opening, record_files
from stoker.store.address import Address
from stoker.store.applying import Batch
from stoker.store.delivery import deliver
from stoker.store.entries import Entry
from stoker.store.queries import reading


def delete(address: Address, run: str, *, artifacts: bool = False) -> list[Path]:
    """Delete a run by its id or the beginning of it; with `artifacts` also the files only it has made.

    Returns:
        The files that were deleted.

    Raises:
        RecordError: no such run.
        Trouble: the store cannot be written.
    """
    with reading(address) as reader:
        run = reader.resolve(run)
        (row,) = reader.runs(run)
        made = _only_its_own(reader.artifacts(), run) if artifacts else []
    told = {"name": row.columns["name"], "files": [str(path) for path in made]}
    write(address, [["delete", run], audit.entry("run deleted", run, told)])
    record = record_files.path_of(run)
    gone = [path for path in (record, record_files.events_path_of(record), *made) if path.exists()]
    for path in gone:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return gone


def _only_its_own(links: list[dict[str, Any]], run: str) -> list[Path]:
    """Files the run made and no other run has to do with."""
    others = {link["path"] for link in links if link["run"] != run}
    own = [link["path"] for link in links if link["run"] == run and link["relation"] == "makes"]
    return [Path(path) for path in own if path and path not in others]


def write(address: Address, entries: list[Entry]) -> None:
    """Write entries now, in one transaction, and not by the writer's thread.

    Raises:
        Trouble: the store cannot be written.
    """
    connection = opening.connect(address)
    try:
        deliver(connection, address, Batch(f"{os.getpid()}-{secrets.token_hex(6)}", 1, entries))
    finally:
        connection.close()
