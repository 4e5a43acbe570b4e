"""The findings on the page: prices, evidence, the heat of the source around them, and the order of repair."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any

from stoker.doctor.report.headline import first_to_change
from stoker.doctor.report.words import MINOR, evidence
from stoker.records import Finding, FindingKey, Record, WhatIf, speedup_without
from stoker.units import duration, size, times

_MAX_ROWS = 60


def findings(record: Record) -> list[dict[str, Any]]:
    """Return all findings, in the order of the record."""
    first, gains = first_to_change(record), _gains(record)
    return [
        {
            **_finding(finding, record),
            "first": finding is first,
            "then": gains.get(finding.key, ""),
        }
        for finding in record.findings
    ]


def _gains(record: Record) -> dict[FindingKey, str]:
    """Return what a repair gains after the ones before it, if it gains almost nothing alone: they hide its gain."""
    found, before = {}, 1.0
    for place in record.what_if.order if record.what_if else []:
        gain = place.together / before if before else 1.0
        before = place.together
        if place.alone < 1 + MINOR <= gain:
            found[place.key] = times(gain)
    return found


def _finding(finding: Finding, record: Record) -> dict[str, Any]:
    lost = finding.lost_s or 0.0
    share = lost / record.wall_s if record.wall_s else 0.0
    speedup = speedup_without(finding, record)
    bounds = finding.what_if
    return {
        "kind": finding.kind,
        "code": finding.code,
        "file": finding.file,
        "line": finding.line,
        "function": "" if finding.function == "<module>" else finding.function,
        "title": finding.title,
        "remedy": finding.remedy,
        "evidence": _evidence(finding),
        "how": finding.evidence,
        "source": finding.source,
        # A price says more than lost seconds: time that overlaps with something else is lost but costs nothing.
        "lost": "" if finding.lost_s is None or bounds else f"{duration(lost)} lost, {share:.1%} of the run",
        "price": _price(finding, speedup),
        "range": "" if bounds is None else _range(bounds),
        "minor": share < MINOR and not (speedup and speedup >= 1 + MINOR) and finding.bytes_saved is None,
        "changes": [[c["argument"], c["from"], c["to"]] for c in finding.detail.get("changes", [])[:5]],
        "note": finding.detail.get("note", ""),
    }


def _price(finding: Finding, speedup: float | None) -> str:
    if speedup is not None:
        return times(speedup)
    return "" if finding.bytes_saved is None else size(finding.bytes_saved)


def _evidence(finding: Finding) -> str:
    """Return the figures of a finding. What changed from call to call is in a separate list."""
    detail = finding.detail.copy()
    detail.pop("changes", None)
    return (
        evidence(dataclasses.replace(finding, detail=detail)).removeprefix(finding.title).removeprefix(" · ")
    )


def excerpts(record: Record) -> list[dict[str, Any]]:
    """Return the source with the heat of its lines: 1 for the costliest line of the run."""
    heat: defaultdict[tuple[str, int], float] = defaultdict(float)
    for finding in record.findings:
        heat[finding.file, finding.line] += finding.lost_s or 0.0
    hottest = max(heat.values(), default=0.0) or 1.0
    found = []
    for excerpt in record.sources:
        file, first = excerpt.file, excerpt.first
        numbers = range(first, first + len(excerpt.lines))
        found.append(
            {
                "file": file,
                "first": first,
                "lines": excerpt.lines,
                "heat": [round(heat.get((file, n), 0.0) / hottest, 3) for n in numbers],
                "cost": [duration(heat[file, n]) if heat.get((file, n)) else "" for n in numbers],
            }
        )
    return found


def order(record: Record) -> dict[str, Any] | None:
    """Return the repairs in the order to make them, without those that would add nothing to the others."""
    what_if = record.what_if
    if what_if is None:
        return None
    rows, before = [], 1.0
    for place in what_if.order[:_MAX_ROWS]:
        if place.together >= before * (1 + MINOR) or place.alone >= 1 + MINOR:
            rows.append(
                {
                    "kind": place.kind,
                    "where": f"{place.file}:{place.line}",
                    "alone": times(place.alone),
                    "together": times(place.together),
                    "gain": place.together,
                }
            )
        before = max(before, place.together)
    return {
        "all": times(what_if.all.speedup) if what_if.all else "",
        "range": _range(what_if.all) if what_if.all else "",
        "rows": rows,
        "assumptions": what_if.assumptions,
    }


def _range(bounds: WhatIf) -> str:
    word = f", {bounds.basis}" if bounds.basis else ""
    return f"{times(bounds.low)} to {times(bounds.high)}{word}"
