"""`stoker audit --verify`: the chain of the audit, what must be there because of it, and every artifact's content.

What it finds, in words: a row that was changed, rows that are missing in the middle or at the end, a run or a link that
the audit knows and the store does not, one that the store has and the audit does not, a file that is gone or was
replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.errors import ArgumentError
from stoker.store import fingerprints
from stoker.store.address import Address
from stoker.store.audit import ORIGIN, kept_head, seal
from stoker.store.queries import Reader, reading

STARTED, DELETED, ARTIFACT = "run started", "run deleted", "artifact"


@dataclass(frozen=True)
class Verified:
    """How much was looked at, and what is wrong: a sentence each."""

    rows: int
    files: int
    problems: list[str]


@dataclass
class _Told:
    """What the audit says there must be."""

    started: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    links: set[tuple[Any, ...]] = field(default_factory=set)
    rows: int = 0
    head: str = ORIGIN


def verify(address: Address) -> Verified:
    """Walk the audit of a store, and everything it tells of.

    Raises:
        Trouble: the store cannot be read.
    """
    with reading(address) as reader:
        told = _Told()
        problems = [*_chain(reader, told)]
        problems += _end(address, told)
        problems += _runs(reader, told)
        links = reader.artifacts()
    problems += _links(links, told)
    newest = _newest(links)
    problems += [problem for link in newest if (problem := _file(link)) is not None]
    return Verified(told.rows, len(newest), problems)


def _chain(reader: Reader, told: _Told) -> Iterator[str]:
    expected = 1
    for row in reader.audit():
        if row.seq != expected:
            gap = f"row {expected} is" if row.seq == expected + 1 else f"rows {expected} to {row.seq - 1} are"
            yield f"audit: {gap} missing"
        elif row.previous != told.head:
            yield f"audit: row {row.seq} does not follow row {row.seq - 1}: one of them was changed"
        content = (row.seq, row.time, row.actor, row.event, row.run, row.details)
        if seal(content, row.previous) != row.hash:
            yield f"audit: row {row.seq} ({row.event}{f', run {row.run}' if row.run else ''}) was changed"
        expected, told.head, told.rows = row.seq + 1, row.hash, row.seq
        _note(row.event, row.run, json.loads(row.details), told)


def _note(event: str, run: str, details: dict[str, Any], told: _Told) -> None:
    if event == STARTED:
        told.started.add(run)
    elif event == DELETED:
        told.deleted.add(run)
    elif event == ARTIFACT:
        told.links.add((run, *(details.get(name) for name in ("relation", "hash", "kind", "path"))))


def _end(address: Address, told: _Told) -> Iterator[str]:
    kept = kept_head(address)
    if kept is None:
        return
    seq, head = kept
    if seq > told.rows:
        yield f"audit: it ends at row {told.rows}, but had a row {seq}: the end was cut off"
    elif seq == told.rows and head != told.head:
        yield f"audit: row {seq} is not the one that was written: the chain was made anew"


def _runs(reader: Reader, told: _Told) -> Iterator[str]:
    present = {row.id for row in reader.runs()}
    for run in sorted(told.started - told.deleted - present):
        yield f"run {run}: it is in the audit, but missing in the store"
    for run in sorted(present - told.started):
        yield f"run {run}: the audit does not know it"


def _links(links: list[dict[str, Any]], told: _Told) -> Iterator[str]:
    present = {tuple(link[name] for name in ("run", "relation", "hash", "kind", "path")) for link in links}
    for run, relation, digest, kind, path in sorted(told.links - present, key=str):
        if run not in told.deleted:
            yield f"run {run}: its link is missing ({relation} {kind} {path or digest})"
    for run, relation, digest, kind, path in sorted(present - told.links, key=str):
        yield f"run {run}: the audit does not know its link ({relation} {kind} {path or digest})"


def _newest(links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each path, what was last known to be there: a run may replace what an earlier one made."""
    newest: dict[str, dict[str, Any]] = {}
    for link in links:
        if link["path"] and (link["path"] not in newest or link["time"] >= newest[link["path"]]["time"]):
            newest[link["path"]] = link
    return [newest[path] for path in sorted(newest)]


def _file(link: dict[str, Any]) -> str | None:
    path = Path(link["path"])
    where = f"{link['kind']} {path} of run {link['run']}"
    if not path.exists():
        return f"{where}: it is gone"
    try:
        found = fingerprints.of_path(path)
    except ArgumentError as error:
        return f"{where}: {error}"
    return None if found.hash == link["hash"] else f"{where}: it was replaced (its content is another)"
