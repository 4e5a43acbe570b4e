"""The findings on the page: price, evidence, the source around them with its heat, and the order of repair."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any

from stoker.records import Finding, Record, speedup_without
from stoker.report.headline import first_to_change
from stoker.report.whatif import times
from stoker.report.words import MINOR, evidence, seconds

_MAX_ROWS = 60


def findings(record: Record) -> list[dict[str, Any]]:
    """All findings, in the order of the record."""
    first, gains = first_to_change(record), _gains(record)
    return [
        {
            **_finding(finding, record),
            "first": finding is first,
            "then": gains.get((finding.kind, finding.file, finding.line), ""),
        }
        for finding in record.findings
    ]


def _gains(record: Record) -> dict[tuple[str, str, int], str]:
    """What a repair gains after those before it, where alone it would gain next to nothing: it was hidden by them."""
    found, before = {}, 1.0
    for row in (record.what_if or {}).get("order") or []:
        gain = float(row["together"]) / before
        before = float(row["together"])
        if float(row["alone"]) < 1 + MINOR <= gain:
            found[str(row["kind"]), str(row["file"]), int(row["line"])] = times(gain)
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
        "line": int(finding.line),
        "function": "" if finding.function == "<module>" else finding.function,
        "title": finding.title,
        "remedy": finding.remedy,
        "evidence": _evidence(finding),
        "how": finding.evidence,
        "source": finding.source,
        # A price says more than the seconds: what overlaps with something else is lost and yet costs nothing.
        "lost": "" if finding.lost_s is None or bounds else f"{seconds(lost)} lost, {share:.1%} of the run",
        "price": "" if speedup is None else times(speedup),
        "range": "" if bounds is None else f"{times(bounds.low)} to {times(bounds.high)}",
        "minor": share < MINOR and not (speedup and speedup >= 1 + MINOR),
        "changes": [
            [str(c["argument"]), str(c["from"]), str(c["to"])] for c in finding.detail.get("changes", [])[:5]
        ],
        "note": str(finding.detail.get("note", "")),
    }


def _evidence(finding: Finding) -> str:
    """The figures; what changed from call to call has a list of its own."""
    detail = {name: value for name, value in finding.detail.items() if name != "changes"}
    return (
        evidence(dataclasses.replace(finding, detail=detail)).removeprefix(finding.title).removeprefix(" · ")
    )


def excerpts(record: Record) -> list[dict[str, Any]]:
    """The source, with the heat of its lines: 1 for the dearest of the run."""
    heat: defaultdict[tuple[str, int], float] = defaultdict(float)
    for finding in record.findings:
        heat[finding.file, finding.line] += finding.lost_s or 0.0
    hottest = max(heat.values(), default=0.0) or 1.0
    found = []
    for excerpt in record.sources:
        file, first = str(excerpt["file"]), int(excerpt["first"])
        lines = [str(line) for line in excerpt["lines"]]
        numbers = range(first, first + len(lines))
        found.append(
            {
                "file": file,
                "first": first,
                "lines": lines,
                "heat": [round(heat.get((file, n), 0.0) / hottest, 3) for n in numbers],
                "cost": [seconds(heat[file, n]) if heat.get((file, n)) else "" for n in numbers],
            }
        )
    return found


def order(record: Record) -> dict[str, Any] | None:
    """The repairs in the order to make them, those left out that would add nothing any more."""
    what_if = record.what_if
    if not what_if:
        return None
    together = what_if.get("all") or {}
    rows, before = [], 1.0
    for row in (what_if.get("order") or [])[:_MAX_ROWS]:
        gain, alone = float(row["together"]), float(row["alone"])
        if gain >= before * (1 + MINOR) or alone >= 1 + MINOR:
            where = f"{row['file']}:{row['line']}"
            rows.append(
                {
                    "kind": str(row["kind"]),
                    "where": where,
                    "alone": times(alone),
                    "together": times(gain),
                    "gain": gain,
                }
            )
        before = max(before, gain)
    return {
        "all": times(float(together["speedup"])) if together else "",
        "range": f"{times(float(together['low']))} to {times(float(together['high']))}" if together else "",
        "rows": rows,
        "assumptions": [str(text) for text in what_if.get("assumptions") or []],
    }
