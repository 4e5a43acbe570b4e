"""Taking a run out of the store: its row, values, ledger, findings, links, and its record; never its audit.

Of the files a run has made only those go that are certainly its own: with the content that was recorded, not older than
the run, and of no other run's. A path alone proves nothing: something else may be there by now.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.errors import ArgumentError
from stoker.tracking.store import audit, fingerprints, opening, record_files
from stoker.tracking.store.address import Address
from stoker.tracking.store.applying import Batch
from stoker.tracking.store.delivery import deliver
from stoker.tracking.store.entries import Entry, redact
from stoker.tracking.store.queries import RunRow, reading

# File systems round times, some to two seconds.
_ROUNDING_S = 2.0


@dataclass
class Deletion:
    """What deleting a run takes with it, and what it leaves, with the reason."""

    run: str
    name: str
    files: list[Path] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def plan(address: Address, run: str, *, artifacts: bool = False) -> Deletion:
    """What deleting a run by its id, or the beginning of it, would do; with `artifacts` also to the files it made.

    Raises:
        RecordError: no such run.
        Trouble: the store cannot be read.
    """
    with reading(address) as reader:
        run = reader.resolve(run)
        (row,) = reader.runs(run)
        links = reader.artifacts() if artifacts else []
    found = Deletion(run, row.columns["name"])
    # An id that makes no file name is one that Stoker has not given, and it has no record.
    if record_files.is_id(run):
        record = record_files.path_of(run)
        found.files += [path for path in (record, record_files.events_path_of(record)) if path.is_file()]
    for link in _made(links, run):
        reason = _reason_to_keep(link, links, row, address)
        if reason is None:
            found.files.append(Path(link["path"]))
        else:
            found.left.append(f"{link['path']}: {reason}")
    return found


def delete(address: Address, run: str, *, artifacts: bool = False) -> Deletion:
    """Delete a run as `plan` says.

    Raises:
        RecordError: no such run.
        Trouble: the store cannot be written.
    """
    planned = plan(address, run, artifacts=artifacts)
    carry_out(address, planned)
    return planned


def carry_out(address: Address, planned: Deletion) -> None:
    """Delete what was planned.

    Raises:
        Trouble: the store cannot be written; nothing is deleted.
    """
    told = {"name": planned.name, "files": [str(path) for path in planned.files]}
    write(address, [["delete", planned.run], audit.entry("run deleted", planned.run, told)])
    for path in planned.files:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _made(links: list[dict[str, Any]], run: str) -> Iterator[dict[str, Any]]:
    """What the run says it made and where, each path once."""
    own = [link for link in links if link["run"] == run and link["relation"] == "makes" and link["path"]]
    yield from {link["path"]: link for link in own}.values()


def _reason_to_keep(
    link: dict[str, Any], links: list[dict[str, Any]], row: RunRow, address: Address
) -> str | None:
    """Why this is not deleted; None if it is certainly the run's own."""
    path = Path(link["path"])
    if any(other["path"] == link["path"] and other["run"] != row.id for other in links):
        return "another run has to do with it"
    if not path.exists():
        return "it is gone already"
    if Path(os.path.realpath(path)) != path:
        return "a link leads elsewhere"
    keepers = [Path.cwd(), Path.home(), address.home.resolve()]
    if any(keeper.is_relative_to(path) for keeper in keepers):
        return "it holds more than this run"
    started = float(row.columns["started"]) - _ROUNDING_S
    inside = [path, *path.rglob("*")] if path.is_dir() else [path]
    if any(one.lstat().st_mtime < started for one in inside if not one.is_dir()):
        return "it was there before the run"
    try:
        found = fingerprints.of_path(path)
    except ArgumentError as error:
        return str(error)
    return None if found.hash == link["hash"] else "its content is not what the run made"


def write(address: Address, entries: list[Entry]) -> None:
    """Write entries now, in one transaction, and not by the writer's thread.

    Raises:
        Trouble: the store cannot be written.
    """
    batch = Batch(f"{os.getpid()}-{secrets.token_hex(6)}", 1, [redact(entry) for entry in entries])
    connection = opening.connect(address)
    try:
        deliver(connection, address, batch)
    finally:
        connection.close()
