"""The record of a run, built from its measurements: ledger, findings and the tables behind them."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from stoker.doctor.attach.sites import shown_path
from stoker.doctor.diagnosis import ledger
from stoker.doctor.diagnosis.excerpts import excerpts
from stoker.doctor.diagnosis.findings import findings
from stoker.doctor.diagnosis.timeline import timeline_of
from stoker.doctor.probes.measurements import Books, Measurements
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.environment import EnvironmentPart
from stoker.doctor.probes.parts.memory import MemoryPart
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.records import DeviceMemory, MemoryBook, MemoryOwner, MemoryRow, Record, Tables
from stoker.redaction import redact, redact_text
from stoker.version import __version__

# How many owners of memory have their lines kept with the record, for each device.
_OWNERS_WITH_SOURCE = 40


@dataclass(frozen=True)
class RunFacts:
    """The facts that are known about a run before it starts."""

    id: str
    program: str
    argv: list[str]
    started: str


def record(facts: RunFacts, m: Measurements, state: str, exit_code: int | None = None) -> Record:
    """Return the record of the run so far."""
    found = findings(m)
    books, steps, owned = m[Books], m[StepsPart], m[MemoryPart].books
    return Record(
        id=facts.id,
        program=facts.program,
        argv=facts.argv,
        exit_code=exit_code,
        versions={"stoker": __version__, **books.versions, "python": platform.python_version()},
        device=ledger.device_book(m),
        wall_s=round(books.wall_ns / 1e9, 6),
        steps=steps.count,
        steps_per_s=_round(steps.per_s),
        examples_per_s=_round(steps.examples_per_s),
        accounts={name: round(seconds, 6) for name, seconds in ledger.accounts(m).items()},
        findings=found,
        started=facts.started,
        state=state,
        notes=[redact_text(note) for note in books.notes],
        tables=Tables.from_rows({name: rows for part in m for name, rows in part.tables(m).items()}),
        step_times=[round(ns / 1e9, 7) for ns in steps.phase.times],
        timeline=timeline_of(m, steps.windows),
        memory=[MemoryRow(*point) for point in m[DevicePart].memory],
        memory_book=MemoryBook(owned, m[MemoryPart].failed) if owned else None,
        sources=excerpts([*found, *_list_large_owners(owned)], _paths(m)),
        environment=redact(dict(m[EnvironmentPart].facts)),
    )


def _list_large_owners(books: list[DeviceMemory]) -> list[MemoryOwner]:
    return [owner for book in books for owner in book.at_peak[:_OWNERS_WITH_SOURCE] if owner.file]


def _paths(m: Measurements) -> dict[str, str]:
    """Map the file names that findings show to the files they were read from."""
    paths = {site[0] for part in m for site in part.sites()}
    return {shown_path(path): path for path in paths}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
