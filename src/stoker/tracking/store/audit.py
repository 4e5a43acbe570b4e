"""The audit: what happened to runs and artifacts, one row after the other, each sealed with the hash of the one before.

The database's triggers refuse to change or delete a row; who gets around them breaks the chain, and `verify` says
where. A chain that was cut at its end is whole in itself: therefore the last hash is also kept in a file beside the
store, and every run and artifact must have the row that tells of it.
"""

from __future__ import annotations

import getpass
import hashlib
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from stoker.files import make_private_directory, write_atomically
from stoker.tracking.store import heads
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Connection
from stoker.tracking.store.entries import Entry, compact

# What can happen.
STARTED, ENDED, SEALED, DELETED, ARTIFACT = (
    "run started",
    "run ended",
    "run sealed",
    "run deleted",
    "artifact",
)
# What the first row follows.
ORIGIN = "0" * 64


def entry(event: str, run: str | None, details: dict[str, Any]) -> Entry:
    """Something to be audited, now."""
    return ["audit", time.time(), event, run, {**details, "by": actor()}]


@cache
def actor() -> str:
    """Who does it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def seal(row: Iterable[Any], previous: str) -> str:
    """The hash of a row (seq, time, actor, event, run, details), given the hash of the one before."""
    return hashlib.sha256(compact([*row, previous]).encode()).hexdigest()


class Chain:
    """The end of the chain, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        connection.lock()
        rows = connection.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
        self.seq, self.head = (int(rows[0][0]), str(rows[0][1])) if rows else (0, ORIGIN)
        self._connection = connection

    def append(self, at: float, event: str, run: str | None, details: dict[str, Any]) -> int:
        """Add a row; its number."""
        who = str(details.get("by", "unknown"))
        told = compact({name: value for name, value in details.items() if name != "by"})
        self.seq += 1
        row = (self.seq, at, who, event, run, told)
        sealed = seal(row, self.head)
        self._connection.execute(
            "INSERT INTO audit (seq, time, actor, event, run, details, previous, hash) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, self.head, sealed),
        )
        self.head = sealed
        return self.seq


def head_path(address: Address) -> Path:
    """Where the last hash is kept beside the store."""
    return address.home / f"audit-{address.mark}.json"


def keep_head(connection: Connection, address: Address, seq: int, digest: str) -> None:
    """Keep the end of the chain outside of the store, if it follows the one that is kept.

    One that does not is a sign that the chain was rewritten: it stays, and `verify` compares with it.

    Raises:
        OSError: it cannot be written.
        Trouble: the store cannot be read.
    """
    kept = kept_head(address)
    if kept is not None:
        if kept.seq >= seq:
            return
        if connection.execute("SELECT hash FROM audit WHERE seq = ?", (kept.seq,)) != [(kept.hash,)]:
            return
    path = head_path(address)
    make_private_directory(path.parent)
    write_atomically(path, heads.now(seq, digest, str(address)).to_json(), private=True)


def kept_head(address: Address) -> heads.Head | None:
    """The end of the chain as it is kept beside the store; None if it is not, or not readable."""
    try:
        return heads.parse(head_path(address).read_bytes())
    except (OSError, ValueError):
        return None
