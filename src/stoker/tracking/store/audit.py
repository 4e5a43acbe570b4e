"""The audit: what happened to runs and artifacts, row by row, each with the hash of the row before.

Triggers in the database refuse to change or delete a row. Circumventing them breaks the chain, and `verify` says where.
A chain with its end cut off is still valid in itself, so the last hash is also kept in a file beside the store, and
every run and artifact must have an audit row.
"""

from __future__ import annotations

import getpass
import hashlib
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from stoker.files import make_private_directory, write_atomically
from stoker.tracking.store import heads
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Connection
from stoker.tracking.store.events import AuditNoted
from stoker.tracking.store.plain_values import dump_compact
from stoker.tracking.store.schema import AUDIT_COLUMNS

# The events that the audit records.
STARTED, ENDED, SEALED, DELETED, ARTIFACT = (
    "run started",
    "run ended",
    "run sealed",
    "run deleted",
    "artifact",
)
# What a server found out about a candidate (`stoker serve --shadow`).
COMPARED = "compared"
# The hash that precedes the first row.
ORIGIN = "0" * 64


def note(event: str, run: str | None, details: Mapping[str, object]) -> AuditNoted:
    """Return an event for the audit, with the present time and the current user."""
    return AuditNoted(time.time(), event, run, {**details, "by": _find_actor()})


@cache
def _find_actor() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def hash_row(
    seq: int, at: float, actor: str, event: str, run: str | None, details: str, previous: str
) -> str:
    """Compute the hash of a row from its fields and the hash of the row before."""
    return hashlib.sha256(dump_compact([seq, at, actor, event, run, details, previous]).encode()).hexdigest()


class Chain:
    """The end of the audit's chain, for appending within one transaction."""

    def __init__(self, connection: Connection) -> None:
        connection.lock()
        rows = connection.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
        self.seq, self.head = (int(rows[0][0]), str(rows[0][1])) if rows else (0, ORIGIN)
        self._connection = connection

    def append(self, noted: AuditNoted) -> int:
        """Add a row, and return its number."""
        details = dict(noted.details)
        actor = str(details.pop("by", "unknown"))
        self.seq += 1
        row = (self.seq, noted.time, actor, noted.event, noted.run, dump_compact(details), self.head)
        self.head = hash_row(*row)
        self._connection.execute(
            f"INSERT INTO audit ({', '.join(AUDIT_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, self.head),
        )
        return self.seq


def head_path(address: Address) -> Path:
    """Return the path of the file beside the store that holds the audit's last hash."""
    return address.home / f"audit-{address.mark}.json"


def keep_head(connection: Connection, address: Address, seq: int, digest: str) -> None:
    """Keep the end of the chain in a file beside the store, if the chain contains the head kept there.

    If it does not, the chain was rewritten: the old head stays, and `verify` compares with it.

    Raises:
        OSError: the file cannot be written.
        StoreError: the store cannot be read.
    """
    kept = read_kept_head(address)
    if kept is not None:
        if kept.seq >= seq:
            return
        if connection.execute("SELECT hash FROM audit WHERE seq = ?", (kept.seq,)) != [(kept.hash,)]:
            return
    path = head_path(address)
    make_private_directory(path.parent)
    write_atomically(path, heads.Head.make_now(seq, digest, str(address)).to_json(), private=True)


def read_kept_head(address: Address) -> heads.Head | None:
    """Read the head that is kept beside the store; None if it is missing or unreadable."""
    try:
        return heads.parse(head_path(address).read_bytes())
    except (OSError, ValueError):
        return None
