"""`stoker runs verify`: check the audit's chain, everything it mentions, and the content of every artifact.

It finds rows that were changed, or are missing in the middle or at the end; a chain that lacks a kept head; runs and
links that are in the audit but not in the store, or the other way round; runs that differ from their seal; missing
triggers; and files that are gone or were replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from stoker.errors import ArgumentError
from stoker.tracking.store import fingerprints, sealing, triggers
from stoker.tracking.store.address import Address
from stoker.tracking.store.audit import (
    ARTIFACT,
    DELETED,
    ENDED,
    ORIGIN,
    SEALED,
    STARTED,
    hash_row,
    head_path,
    read_kept_head,
)
from stoker.tracking.store.heads import Head
from stoker.tracking.store.queries import Reader, open_reader
from stoker.tracking.store.schema import ArtifactLink, AuditRow
from stoker.units import quantity

# A link as the audit describes it: run, relation, hash, kind, path.
LinkKey: TypeAlias = tuple[object, ...]
_KEY_DETAILS = ("relation", "hash", "kind", "path")


@dataclass(frozen=True)
class Anchor:
    """A head from elsewhere, and its source. `trusted` is the public key that must have signed it, if any."""

    head: Head
    source: str
    trusted: str = ""


@dataclass(frozen=True)
class Verification:
    """The outcome: how much was checked, what is wrong, and what could not be judged, one sentence each."""

    rows: int
    files: int
    problems: list[str]
    sealed: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Seal:
    """An audit row that seals a run: its number, and a digest of each part."""

    seq: int
    parts: tuple[object, ...]


@dataclass
class _AuditSummary:
    """The content that the store must have according to the audit."""

    # The hashes of the rows that the heads name.
    hashes: dict[int, str | None]
    started: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    # By run, the last row about each link.
    links: dict[str, dict[LinkKey, int]] = field(default_factory=dict)
    # Each run's final state, and its last seal.
    states: dict[str, object] = field(default_factory=dict)
    seals: dict[str, _Seal] = field(default_factory=dict)
    # Runs that were sealed again with other content, with both seals.
    resealed: list[tuple[str, _Seal, _Seal]] = field(default_factory=list)
    deletions: list[int] = field(default_factory=list)
    rows: int = 0
    head: str = ORIGIN


def verify(address: Address, anchor: Anchor | None = None) -> Verification:
    """Check the audit of a store and everything it mentions. With an `anchor`, the chain must contain that head.

    Raises:
        StoreError: the store cannot be read.
        SigningError: the anchor's key cannot be used.
    """
    # This is read before the store, because writers add rows first and replace the head afterwards.
    kept = read_kept_head(address)
    heads = [one for one in (kept, anchor.head if anchor else None) if one is not None]
    notes: list[str] = []
    with open_reader(address) as reader:
        told = _AuditSummary({head.seq: None for head in heads})
        problems = [*_check_chain(reader, told)]
        problems += _check_heads(address, told, kept, anchor, notes)
        problems += triggers.find_problems(reader)
        problems += _check_runs(reader, told)
        problems += _check_seals(reader, told, notes)
        links = reader.artifacts()
    known = {link: seq for of_run in told.links.values() for link, seq in of_run.items()}
    problems += _check_links(links, known)
    newest = _find_newest(links, known)
    problems += [problem for link in newest if (problem := _check_file(link)) is not None]
    return Verification(told.rows, len(newest), problems, len(told.seals), notes)


def _check_chain(reader: Reader, told: _AuditSummary) -> Iterator[str]:
    expected = 1
    for row in reader.audit():
        if not isinstance(row.seq, int):
            yield f"audit: a row has the number {row.seq!r}"
            continue
        if row.seq != expected:
            gap = f"row {expected} is" if row.seq == expected + 1 else f"rows {expected} to {row.seq - 1} are"
            yield f"audit: {gap} missing"
        elif row.previous != told.head:
            yield f"audit: row {row.seq} does not follow row {row.seq - 1}: one of them was changed"
        content = (row.seq, row.time, row.actor, row.event, row.run, row.details, row.previous)
        if hash_row(*content) != row.hash:
            yield f"audit: row {row.seq} ({row.event}{f', run {row.run}' if row.run else ''}) was changed"
        expected, told.head, told.rows = row.seq + 1, row.hash, row.seq
        if row.seq in told.hashes:
            told.hashes[row.seq] = row.hash
        _add_row(row, told)


def _add_row(row: AuditRow, told: _AuditSummary) -> None:
    try:
        details = json.loads(row.details)
    except (ValueError, TypeError, RecursionError):
        return
    if not isinstance(details, dict):
        return
    seq, event, run = row.seq, row.event, str(row.run)
    if event == STARTED:
        told.started.add(run)
        # A run may be deleted and then imported again.
        told.deleted.discard(run)
    elif event == DELETED:
        told.deleted.add(run)
        told.states.pop(run, None)
        told.seals.pop(run, None)
        told.links.pop(run, None)
        told.deletions.append(seq)
    elif event == ENDED:
        told.states[run] = details.get("state")
    elif event == SEALED:
        new, old = _Seal(seq, tuple(details.get(part) for part in sealing.PARTS)), told.seals.get(run)
        if old is not None and old.parts != new.parts:
            told.resealed.append((run, old, new))
        told.seals[run] = new
    elif event == ARTIFACT:
        link = (run, *(details.get(name) for name in _KEY_DETAILS))
        told.links.setdefault(run, {})[link] = seq


def _check_heads(
    address: Address, told: _AuditSummary, kept: Head | None, anchor: Anchor | None, notes: list[str]
) -> Iterator[str]:
    """Check that the chain contains the head beside the store and the anchor."""
    if kept is not None:
        place = head_path(address)
        if kept.seq > told.rows:
            yield f"audit: it ends at row {told.rows}, but had a row {kept.seq} ({place}): the end was cut off"
        elif told.hashes[kept.seq] != kept.hash:
            yield f"audit: row {kept.seq} is not the one that was written ({place}): the chain was rebuilt"
    elif told.rows and anchor is None:
        missing = f"no head is kept beside the store ({head_path(address)})"
        if address.path is not None:
            yield f"audit: {missing}: it was deleted, or the store was moved; compare with your own: --head FILE"
        else:
            notes.append(f"{missing}: a chain with its end cut off looks whole; compare with --head FILE")
    if anchor is None:
        return
    head, source = anchor.head, anchor.source
    if anchor.trusted and not head.is_signed_by(anchor.trusted):
        yield f"head: {source} is not signed by {anchor.trusted}"
    elif not anchor.trusted:
        notes.append(f"{source} was trusted as it is: without --key, its signature was not checked")
    if head.seq > told.rows:
        yield f"audit: it ends at row {told.rows}, but {source} has seen row {head.seq}: the end was cut off"
    elif told.hashes[head.seq] != head.hash:
        yield f"audit: row {head.seq} is not the one that {source} has seen: the chain was rebuilt"
    else:
        yield from _check_since(head.seq, source, told, notes)


def _check_since(seq: int, source: str, told: _AuditSummary, notes: list[str]) -> Iterator[str]:
    """Check that the rows after a head do not change anything that was sealed before it."""
    for run, old, new in told.resealed:
        if old.seq <= seq < new.seq:
            yield f"run {run}: {source} has seen it sealed (row {old.seq}); row {new.seq} seals different content"
    deleted = sum(one > seq for one in told.deletions)
    notes.append(f"{told.rows - seq} rows were added since {source}; {deleted} of them delete a run")


def _check_runs(reader: Reader, told: _AuditSummary) -> Iterator[str]:
    states = {str(run): state for run, state in reader.select("SELECT id, state FROM runs")}
    for run in sorted(told.started - told.deleted - states.keys()):
        yield f"run {run}: it is in the audit but not in the store"
    for run in sorted(states.keys() - (told.started - told.deleted)):
        yield f"run {run}: it is in the store but not in the audit"
    for run, state in sorted(told.states.items()):
        # Sealed runs are compared with their seal.
        if run in states and run not in told.seals and states[run] != state:
            yield f"run {run}: it ended as {state!r}, but the store says {states[run]!r}"


def _check_seals(reader: Reader, told: _AuditSummary, notes: list[str]) -> Iterator[str]:
    present = {str(run) for (run,) in reader.select("SELECT id FROM runs")}
    for run, sealed in sorted(told.seals.items()):
        if run not in present:
            continue
        try:
            found = sealing.compute_digests(reader.select, run)
        except (TypeError, ValueError, OverflowError):
            # SQLite accepts text in place of a number.
            yield f"run {run}: its values are no longer numbers"
            continue
        changed = [part for part, was in zip(sealing.PARTS, sealed.parts, strict=True) if found[part] != was]
        if changed:
            yield f"run {run}: its {' and '.join(changed)} changed after it was sealed"
    unsealed = len(present - told.seals.keys())
    if unsealed:
        have = "has" if unsealed == 1 else "have"
        notes.append(
            f"{quantity(unsealed, 'run')} {have} no seal: still running, killed, or from an earlier Stoker"
        )


def _check_links(links: list[ArtifactLink], known: dict[LinkKey, int]) -> Iterator[str]:
    present = {_make_key(link) for link in links}
    for run, relation, digest, kind, path in sorted(known.keys() - present, key=str):
        yield f"run {run}: its link is missing ({relation} {kind} {path or digest})"
    for run, relation, digest, kind, path in sorted(present - known.keys(), key=str):
        yield f"run {run}: its link is not in the audit ({relation} {kind} {path or digest})"


def _find_newest(links: list[ArtifactLink], known: dict[LinkKey, int]) -> list[ArtifactLink]:
    """For each path, return the link that should describe its content now: a run may replace an earlier run's file.

    The order is that of the audit, because clocks may be wrong.
    """
    newest: dict[str, tuple[int, ArtifactLink]] = {}
    for link in links:
        seq = known.get(_make_key(link), 0)
        if link.path and seq >= newest.get(link.path, (-1, link))[0]:
            newest[link.path] = (seq, link)
    return [newest[path][1] for path in sorted(newest)]


def _make_key(link: ArtifactLink) -> LinkKey:
    return (link.run, link.relation, link.hash, link.kind, link.path)


def _check_file(link: ArtifactLink) -> str | None:
    path = Path(link.path)
    where = f"{link.kind} {path} of run {link.run}"
    if not path.exists():
        return f"{where}: it is gone"
    try:
        found = fingerprints.hash_path(path)
    except ArgumentError as error:
        return f"{where}: {error}"
    return None if found.hash == link.hash else f"{where}: it was replaced (its content differs)"
