"""Compare two runs: what they were given, and how their results and speed differ."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.tracking.store.linking import USES
from stoker.tracking.store.measured import SERIES_PREFIX
from stoker.tracking.store.queries import Reader
from stoker.tracking.store.schema import RunRow

# What a run is given, in the order of the report.
SECTIONS = ("code", "data", "parameters", "versions", "machine")


@dataclass(frozen=True)
class Difference:
    """One thing that differs; its value is None for a run that does not have it."""

    name: str
    a: object
    b: object


@dataclass(frozen=True)
class Differences:
    """The changes between two runs, by section; and the outcome: series, speeds and accounts that both have."""

    a: str
    b: str
    changed: dict[str, list[Difference]] = field(default_factory=dict)
    results: list[Difference] = field(default_factory=list)
    speed: list[Difference] = field(default_factory=list)
    ledger: list[Difference] = field(default_factory=list)


def diff(reader: Reader, a: str, b: str) -> Differences:
    """Compare two runs by id."""
    rows = [reader.run(run) for run in (a, b)]
    inputs = [_collect_inputs(reader, row) for row in rows]
    changed = {section: _compare(inputs[0][section], inputs[1][section]) for section in SECTIONS}
    # The ledger's values have a section of their own.
    series = [
        {name: one.last for name, one in row.series.items() if not name.startswith(SERIES_PREFIX)}
        for row in rows
    ]
    return Differences(
        a,
        b,
        {section: found for section, found in changed.items() if found},
        _pair(*series),
        _pair(*(_collect_speed(row) for row in rows)),
        _pair(reader.ledger(a), reader.ledger(b)),
    )


def _collect_inputs(reader: Reader, row: RunRow) -> dict[str, dict[str, object]]:
    code: dict[str, object] = {
        "program": row.program,
        "arguments": " ".join(row.arguments),
        "commit": row.git_commit,
        "uncommitted changes": row.git_diff,
    }
    return {
        "code": code,
        "data": {link.name: link.hash for link in reader.artifacts(row.id) if link.relation == USES},
        "parameters": row.parameters,
        "versions": row.versions,
        "machine": row.machine,
    }


def _collect_speed(row: RunRow) -> dict[str, float]:
    figures = {"seconds": row.seconds, "steps": row.steps, "steps_per_s": row.steps_per_s}
    return {name: value for name, value in figures.items() if value is not None}


def _compare(a: dict[str, object], b: dict[str, object]) -> list[Difference]:
    names = [*a, *(name for name in b if name not in a)]
    return [Difference(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)]


def _pair(a: dict[str, float], b: dict[str, float]) -> list[Difference]:
    return [Difference(name, a[name], b[name]) for name in a if name in b]
