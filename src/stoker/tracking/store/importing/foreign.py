"""A run on its way in: what every source has to say of it, and how it is written, once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker.tracking.store import audit, entries
from stoker.tracking.store.address import Address
from stoker.tracking.store.deleting import write
from stoker.tracking.store.entries import Entry
from stoker.tracking.store.queries import reading

# What the row of a run must have, where the source does not say.
_UNKNOWN = {
    "name": "",
    "kind": "import",
    "program": "",
    "arguments": [],
    "parameters": {},
    "versions": {},
    "machine": {},
    "state": "finished",
}


@dataclass
class Foreign:
    """One run: its id here, the columns of its row, its values by series, and whatever else it has."""

    id: str
    source: str
    columns: dict[str, Any]
    # (step, time, value), in order.
    series: dict[str, list[tuple[int, float, float]]] = field(default_factory=dict)
    more: list[Entry] = field(default_factory=list)


def id_of(source: str) -> str:
    """The same id for the same source: a run that is imported again is known."""
    return f"import-{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def keep(address: Address, runs: Iterable[Foreign]) -> Iterator[tuple[Foreign, bool]]:
    """Write runs, one transaction each; each with whether it is new.

    Raises:
        Trouble: the store cannot be written.
    """
    with reading(address) as reader:
        known = {row.id for row in reader.runs()}
    for run in runs:
        fresh = run.id not in known
        if fresh:
            known.add(run.id)
            write(address, list(_entries(run)))
        yield run, fresh


def _entries(run: Foreign) -> Iterator[Entry]:
    columns = {**_UNKNOWN, **run.columns}
    columns["parameters"] = entries.finite(columns["parameters"])
    yield ["run", run.id, columns]
    told = {"name": columns["name"], "kind": columns["kind"], "imported from": run.source}
    yield audit.entry("run started", run.id, told)
    for name, points in run.series.items():
        for step, at, value in points:
            yield ["values", run.id, step, at, {name: value}]
    yield from run.more
