"""Two runs side by side: what was changed between them, and what it did to their results and their speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.tracking.store.queries import Reader, RunRow

# What a run takes in. The order is that of the report.
SECTIONS = ("code", "data", "parameters", "versions", "machine")


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same: None where a run does not have it."""

    name: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Differences:
    """What was changed, by section, and what came of it: series, speed and accounts that both runs have."""

    a: str
    b: str
    changed: dict[str, list[Difference]] = field(default_factory=dict)
    results: list[Difference] = field(default_factory=list)
    speed: list[Difference] = field(default_factory=list)
    ledger: list[Difference] = field(default_factory=list)


def diff(reader: Reader, a: str, b: str) -> Differences:
    """Compare two runs by id."""
    rows = {row.id: row for row in reader.runs(a, b)}
    inputs = [_inputs(reader, rows[run]) for run in (a, b)]
    changed = {section: _differences(inputs[0][section], inputs[1][section]) for section in SECTIONS}
    speeds = [_speed(rows[run]) for run in (a, b)]
    series = [{name: one.last for name, one in rows[run].series.items()} for run in (a, b)]
    return Differences(
        a,
        b,
        {section: found for section, found in changed.items() if found},
        _beside(*series),
        _beside(*speeds),
        _beside(reader.ledger(a), reader.ledger(b)),
    )


def _inputs(reader: Reader, row: RunRow) -> dict[str, dict[str, Any]]:
    columns = row.columns
    code = {
        "program": columns["program"],
        "arguments": " ".join(columns["arguments"]),
        "commit": columns["git_commit"],
        "uncommitted changes": reader.column(row.id, "git_diff"),
    }
    used = [one for one in reader.artifacts(row.id) if one["relation"] == "uses"]
    data = {one["name"]: one["hash"] for one in used}
    return {
        "code": code,
        "data": data,
        "parameters": columns["parameters"],
        "versions": columns["versions"],
        "machine": columns["machine"],
    }


def _speed(row: RunRow) -> dict[str, float]:
    figures = {"seconds": row.seconds, **{name: row.columns[name] for name in ("steps", "steps_per_s")}}
    return {name: value for name, value in figures.items() if value is not None}


def _differences(a: dict[str, Any], b: dict[str, Any]) -> list[Difference]:
    names = [*a, *(name for name in b if name not in a)]
    return [Difference(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)]


def _beside(a: dict[str, float], b: dict[str, float]) -> list[Difference]:
    return [Difference(name, a[name], b[name]) for name in a if name in b]
