"""A run from elsewhere: what each source provides, and how it is written to the store, just once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stoker.tracking.store import audit
from stoker.tracking.store.address import Address
from stoker.tracking.store.deleting import write_now
from stoker.tracking.store.events import Columns, Event, RunStarted, ValuesLogged
from stoker.tracking.store.plain_values import make_plain
from stoker.tracking.store.queries import open_reader

# Columns that every run has, for sources that do not provide them.
_DEFAULTS: Columns = {
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
class ImportedRun:
    """A run from elsewhere: its id in the store, the columns of its row, its points by series, and other events."""

    id: str
    source: str
    columns: Columns
    # (step, time, value), in order.
    series: dict[str, list[tuple[int, float, float]]] = field(default_factory=dict)
    more: list[Event] = field(default_factory=list)


def make_id(source: str) -> str:
    """Make the id of a run, always the same for the same source."""
    return f"import-{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def import_runs(address: Address, runs: Iterable[ImportedRun]) -> Iterator[tuple[ImportedRun, bool]]:
    """Write runs that the store does not have, one transaction each. Yield each run and whether it is new.

    Raises:
        StoreError: the store cannot be written.
    """
    with open_reader(address) as reader:
        known = {row.id for row in reader.runs()}
    for run in runs:
        is_new = run.id not in known
        if is_new:
            known.add(run.id)
            write_now(address, list(_make_events(run)))
        yield run, is_new


def _make_events(run: ImportedRun) -> Iterator[Event]:
    columns = {**_DEFAULTS, **run.columns}
    columns["parameters"] = make_plain(columns["parameters"])
    yield RunStarted(run.id, columns)
    details = {"name": columns["name"], "kind": columns["kind"], "imported from": run.source}
    yield audit.note(audit.STARTED, run.id, details)
    for name, points in run.series.items():
        for step, at, value in points:
            yield ValuesLogged(run.id, step, at, {name: value})
    yield from run.more
