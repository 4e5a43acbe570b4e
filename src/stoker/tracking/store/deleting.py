"""Delete a run: its row, values, ledger, findings and links, and its record; never its audit rows.

Only those files that the run made are deleted which are certainly its own: they have the recorded content, are not
older than the run, and belong to no other run. A path alone proves nothing, since another file may be there by now.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from stoker.errors import ArgumentError
from stoker.tracking.store import audit, fingerprints, opening, record_files
from stoker.tracking.store.address import Address
from stoker.tracking.store.delivery import deliver
from stoker.tracking.store.events import Batch, Event, RunDeleted, redact
from stoker.tracking.store.linking import MAKES
from stoker.tracking.store.queries import open_reader
from stoker.tracking.store.schema import ArtifactLink, RunRow

# File systems round times, some to two seconds.
_ROUNDING_S = 2.0


@dataclass
class Deletion:
    """The things that deleting a run deletes, and those that it leaves, with the reasons."""

    run: str
    name: str
    files: list[Path] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def plan(address: Address, run: str, *, artifacts: bool = False) -> Deletion:
    """Plan the deletion of a run by its id, or the start of it; with `artifacts`, also of the files that it made.

    Raises:
        RecordError: there is no such run.
        StoreError: the store cannot be read.
    """
    with open_reader(address) as reader:
        run = reader.resolve(run)
        row = reader.run(run)
        links = reader.artifacts() if artifacts else []
    found = Deletion(run, row.name)
    # An id that cannot be a file name is not one of Stoker's, so it has no record.
    if record_files.is_id(run):
        record = record_files.path_of(run)
        beside = (record_files.events_path_of(record), record_files.steps_path_of(record))
        found.files += [path for path in (record, *beside) if path.is_file()]
    # List each path once.
    made = {link.path: link for link in links if link.run == run and link.relation == MAKES and link.path}
    for path, link in made.items():
        reason = _find_reason_to_keep(link, links, row, address)
        if reason is None:
            found.files.append(Path(path))
        else:
            found.left.append(f"{path}: {reason}")
    return found


def delete(address: Address, run: str, *, artifacts: bool = False) -> Deletion:
    """Plan the deletion of a run, and carry it out.

    Raises:
        RecordError: there is no such run.
        StoreError: the store cannot be written.
    """
    planned = plan(address, run, artifacts=artifacts)
    carry_out(address, planned)
    return planned


def carry_out(address: Address, planned: Deletion) -> None:
    """Delete what was planned.

    Raises:
        StoreError: the store cannot be written; nothing is deleted.
    """
    details = {"name": planned.name, "files": [str(path) for path in planned.files]}
    write_now(address, [RunDeleted(planned.run), audit.note(audit.DELETED, planned.run, details)])
    for path in planned.files:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _find_reason_to_keep(
    link: ArtifactLink, links: list[ArtifactLink], row: RunRow, address: Address
) -> str | None:
    """Say why a file is not deleted; None if it is certainly the run's own."""
    path = Path(link.path)
    if any(other.path == link.path and other.run != row.id for other in links):
        return "another run uses or makes it"
    if not path.exists():
        return "it is gone already"
    if Path(os.path.realpath(path)) != path:
        return "a link leads elsewhere"
    keepers = [Path.cwd(), Path.home(), address.home.resolve()]
    if any(keeper.is_relative_to(path) for keeper in keepers):
        return "it holds more than this run"
    started = row.started - _ROUNDING_S
    inside = [path, *path.rglob("*")] if path.is_dir() else [path]
    if any(one.lstat().st_mtime < started for one in inside if not one.is_dir()):
        return "it was there before the run"
    try:
        found = fingerprints.hash_path(path)
    except ArgumentError as error:
        return str(error)
    return None if found.hash == link.hash else "its content is not what the run made"


def write_now(address: Address, events: list[Event]) -> None:
    """Write events now, in one transaction, bypassing the writer's thread.

    Raises:
        StoreError: the store cannot be written.
    """
    batch = Batch(f"{os.getpid()}-{secrets.token_hex(6)}", 1, [redact(event) for event in events])
    connection = opening.connect(address)
    try:
        deliver(connection, address, batch)
    finally:
        connection.close()
