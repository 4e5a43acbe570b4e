"""`stoker runs verify`: the chain of the audit, what must be there because of it, and every artifact's content.

What it finds, in words: a row that was changed, rows that are missing in the middle or at the end, a chain that does
not contain a head that was kept, a run or a link that the audit knows and the store does not, one that the store has
and the audit does not, a run that is not what was sealed when it ended, a trigger that is missing, a file that is gone
or was replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    head_path,
    kept_head,
    seal,
)
from stoker.tracking.store.heads import Head
from stoker.tracking.store.queries import Reader, reading

# A link as the audit tells of it.
Link = tuple[Any, ...]
_OF_A_LINK = ("run", "relation", "hash", "kind", "path")


@dataclass(frozen=True)
class Anchor:
    """A head from elsewhere, and where it is from; `trusted` is the public key that must have signed it."""

    head: Head
    source: str
    trusted: str = ""


@dataclass(frozen=True)
class Verified:
    """How much was looked at, what is wrong, and what could not be judged: a sentence each."""

    rows: int
    files: int
    problems: list[str]
    sealed: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Seal:
    """A row that says what a run is: its number, and a digest of each part."""

    seq: int
    parts: tuple[Any, ...]


@dataclass
class _Told:
    """What the audit says there must be."""

    # The hashes of the rows that heads speak of.
    hashes: dict[int, str | None]
    started: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    # By run and link, the row that tells of it last.
    links: dict[str, dict[Link, int]] = field(default_factory=dict)
    # By run, its state when it ended, and its last seal.
    states: dict[str, Any] = field(default_factory=dict)
    seals: dict[str, _Seal] = field(default_factory=dict)
    # Runs that were sealed with one content, and later with another: both seals.
    resealed: list[tuple[str, _Seal, _Seal]] = field(default_factory=list)
    deletions: list[int] = field(default_factory=list)
    rows: int = 0
    head: str = ORIGIN


def verify(address: Address, anchor: Anchor | None = None) -> Verified:
    """Walk the audit of a store, and everything it tells of; with an `anchor`, its chain must contain that head.

    Raises:
        Trouble: the store cannot be read.
        SigningError: the anchor's key cannot be used.
    """
    # Before the store is read: whoever writes meanwhile adds rows first, and the head after that.
    kept = kept_head(address)
    heads = [one for one in (kept, anchor.head if anchor else None) if one is not None]
    notes: list[str] = []
    with reading(address) as reader:
        told = _Told({head.seq: None for head in heads})
        problems = [*_chain(reader, told)]
        problems += _ends(address, told, kept, anchor, notes)
        problems += triggers.missing(reader)
        problems += _runs(reader, told)
        problems += _seals(reader, told, notes)
        links = reader.artifacts()
    known = {link: seq for of_run in told.links.values() for link, seq in of_run.items()}
    problems += _links(links, known)
    newest = _newest(links, known)
    problems += [problem for link in newest if (problem := _file(link)) is not None]
    return Verified(told.rows, len(newest), problems, len(told.seals), notes)


def _chain(reader: Reader, told: _Told) -> Iterator[str]:
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
        content = (row.seq, row.time, row.actor, row.event, row.run, row.details)
        if seal(content, row.previous) != row.hash:
            yield f"audit: row {row.seq} ({row.event}{f', run {row.run}' if row.run else ''}) was changed"
        expected, told.head, told.rows = row.seq + 1, row.hash, row.seq
        if row.seq in told.hashes:
            told.hashes[row.seq] = row.hash
        try:
            details = json.loads(row.details)
        except (ValueError, TypeError, RecursionError):
            details = None
        if isinstance(details, dict):
            _note(row.seq, row.event, row.run, details, told)


def _note(seq: int, event: str, run: str, details: dict[str, Any], told: _Told) -> None:
    if event == STARTED:
        told.started.add(run)
        # One that was deleted and imported again is there again.
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
        link = (run, *(details.get(name) for name in _OF_A_LINK[1:]))
        told.links.setdefault(run, {})[link] = seq


def _ends(
    address: Address, told: _Told, kept: Head | None, anchor: Anchor | None, notes: list[str]
) -> Iterator[str]:
    """Whether the chain contains the heads there are."""
    if kept is not None:
        place = head_path(address)
        if kept.seq > told.rows:
            yield f"audit: it ends at row {told.rows}, but had a row {kept.seq} ({place}): the end was cut off"
        elif told.hashes[kept.seq] != kept.hash:
            yield f"audit: row {kept.seq} is not the one that was written ({place}): the chain was made anew"
    elif told.rows and anchor is None:
        missing = f"no head is kept beside the store ({head_path(address)})"
        if address.path is not None:
            yield f"audit: {missing}: it was deleted, or the store was moved; compare with one of yours: --head FILE"
        else:
            notes.append(f"{missing}: a chain that was cut at its end looks whole; compare with --head FILE")
    if anchor is None:
        return
    head, source = anchor.head, anchor.source
    if anchor.trusted and not head.is_signed_by(anchor.trusted):
        yield f"head: {source} is not signed by {anchor.trusted}"
    elif not anchor.trusted:
        notes.append(f"{source} was taken as it is: without --key, nobody's signature on it was checked")
    if head.seq > told.rows:
        yield f"audit: it ends at row {told.rows}, but {source} has seen row {head.seq}: the end was cut off"
    elif told.hashes[head.seq] != head.hash:
        yield f"audit: row {head.seq} is not the one that {source} has seen: the chain was made anew"
    else:
        yield from _since(head.seq, source, told, notes)


def _since(seq: int, source: str, told: _Told, notes: list[str]) -> Iterator[str]:
    """What the rows after a head have done to what was before it."""
    for run, old, new in told.resealed:
        if old.seq <= seq < new.seq:
            yield f"run {run}: {source} has seen it sealed (row {old.seq}); row {new.seq} seals another content"
    deleted = sum(one > seq for one in told.deletions)
    notes.append(f"{told.rows - seq} rows were added since {source}; {deleted} of them delete a run")


def _runs(reader: Reader, told: _Told) -> Iterator[str]:
    states = {str(run): state for run, state in reader.select("SELECT id, state FROM runs", ())}
    for run in sorted(told.started - told.deleted - states.keys()):
        yield f"run {run}: it is in the audit, but missing in the store"
    for run in sorted(states.keys() - (told.started - told.deleted)):
        yield f"run {run}: the audit does not know it"
    for run, state in sorted(told.states.items()):
        # What is sealed is compared by its seal.
        if run in states and run not in told.seals and states[run] != state:
            yield f"run {run}: it ended as {state!r}, and the store says {states[run]!r}"


def _seals(reader: Reader, told: _Told, notes: list[str]) -> Iterator[str]:
    present = {str(run) for (run,) in reader.select("SELECT id FROM runs", ())}
    for run, sealed in sorted(told.seals.items()):
        if run not in present:
            continue
        try:
            found = sealing.digests(reader.select, run)
        except (TypeError, ValueError, OverflowError):
            # SQLite takes text for a number.
            yield f"run {run}: its values are not numbers any more"
            continue
        changed = [part for part, was in zip(sealing.PARTS, sealed.parts, strict=True) if found[part] != was]
        if changed:
            yield f"run {run}: its {' and '.join(changed)} changed after it was sealed"
    unsealed = len(present - told.seals.keys())
    if unsealed:
        notes.append(f"{unsealed} runs have no seal: still running, killed, or of an earlier Stoker")


def _links(links: list[dict[str, Any]], known: dict[Link, int]) -> Iterator[str]:
    present = {_key(link) for link in links}
    for run, relation, digest, kind, path in sorted(known.keys() - present, key=str):
        yield f"run {run}: its link is missing ({relation} {kind} {path or digest})"
    for run, relation, digest, kind, path in sorted(present - known.keys(), key=str):
        yield f"run {run}: the audit does not know its link ({relation} {kind} {path or digest})"


def _newest(links: list[dict[str, Any]], known: dict[Link, int]) -> list[dict[str, Any]]:
    """For each path, what was last known to be there: a run may replace what an earlier one made.

    Last is what the audit tells of last: clocks go wrong.
    """
    newest: dict[str, tuple[int, dict[str, Any]]] = {}
    for link in links:
        seq = known.get(_key(link), 0)
        if link["path"] and seq >= newest.get(link["path"], (-1, link))[0]:
            newest[link["path"]] = (seq, link)
    return [newest[path][1] for path in sorted(newest)]


def _key(link: dict[str, Any]) -> Link:
    return tuple(link[name] for name in _OF_A_LINK)


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
