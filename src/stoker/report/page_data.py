"""What the page shows, as plain JSON values: a record's figures in words, sorted, cut to a bearable size.

Everything is made a string, a number or a list here, so that the page's script only places it.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections import defaultdict
from typing import Any

from stoker.records import ACCOUNTS, Finding, Record
from stoker.report.headline import first_to_change, price, sentence
from stoker.report.pipeline_tree import pipelines
from stoker.report.remedies import remedies
from stoker.report.whatif import times
from stoker.report.words import MEANINGS, MINOR, evidence, rate, seconds, size

_MAX_ROWS = 60
_MAX_SPANS = 8000
_MAX_POINTS = 1024
# The recorder's raw accounts, in the ledger's words.
_RAW = {"graph": "compute", "eager": "dispatch"}


def run_data(record: Record) -> dict[str, Any]:
    """All sections of the page of one run."""
    return {
        "page": "run",
        "title": program(record),
        "sentence": [dataclasses.asdict(part) for part in sentence(record)],
        "facts": facts(record),
        "accounts": accounts(record),
        "timeline": _timeline(record),
        "steps": _step_times(record),
        "findings": _findings(record),
        "excerpts": _excerpts(record),
        "remedies": remedies({finding.kind for finding in record.findings}),
        "order": _order(record),
        "traces": _traces(record),
        "pipelines": pipelines(record),
        "copies": _sites(record, "copies"),
        "reads": _sites(record, "syncs"),
        "callbacks": _callbacks(record),
        "functions": _functions(record),
        "checkpoints": _sites(record, "checkpoints"),
        "memory": _memory(record),
        "environment": _environment(record),
        "notes": _notes(record),
    }


def program(record: Record) -> str:
    """The command line of the run."""
    return shlex.join([str(word) for word in (record.program, *record.argv)])


def facts(record: Record) -> list[list[str]]:
    """Figures under the sentence: name and value."""
    found = [["wall time", seconds(record.wall_s)]]
    if record.steps:
        found.append(["steps", f"{record.steps:,}"])
    if record.steps_per_s is not None:
        found.append(["steps a second", rate(record.steps_per_s)])
    if record.examples_per_s is not None:
        found.append(["examples a second", rate(record.examples_per_s)])
    if record.device.busy is not None:
        found.append([f"{record.device.kind.replace('_', ' ').lower()} busy", f"{record.device.busy:.0%}"])
    if record.state == "running":
        found.append(["state", "did not end: this is what was saved last"])
    elif record.exit_code:
        found.append(["exit code", str(record.exit_code)])
    if record.started:
        found.append(["started", record.started.replace("T", " ").replace("Z", " UTC")])
    return found


def accounts(record: Record) -> list[dict[str, Any]]:
    """Where the time went, longest first."""
    wall = record.wall_s or 1.0
    rows = sorted(record.accounts.items(), key=lambda item: -item[1])
    return [
        {
            "name": name,
            "meaning": MEANINGS.get(name, ""),
            "share": spent / wall,
            "time": seconds(spent),
            "percent": f"{spent / wall:.1%}",
        }
        for name, spent in rows
        if spent / wall >= 0.0005
    ]


def _findings(record: Record) -> list[dict[str, Any]]:
    first = first_to_change(record)
    return [{**_finding(finding, record), "first": finding is first} for finding in record.findings]


def _finding(finding: Finding, record: Record) -> dict[str, Any]:
    lost = finding.lost_s or 0.0
    share = lost / record.wall_s if record.wall_s else 0.0
    speedup = price(finding, record)
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
        "lost": "" if finding.lost_s is None else f"{seconds(lost)} lost, {share:.1%} of the run",
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


def _excerpts(record: Record) -> list[dict[str, Any]]:
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


def _order(record: Record) -> dict[str, Any] | None:
    what_if = record.what_if
    if not what_if:
        return None
    together = what_if.get("all") or {}
    steps = what_if.get("order") or []
    return {
        "all": times(float(together["speedup"])) if together else "",
        "range": f"{times(float(together['low']))} to {times(float(together['high']))}" if together else "",
        "rows": [
            {
                "kind": str(row["kind"]),
                "where": f"{row['file']}:{row['line']}",
                "alone": times(float(row["alone"])),
                "together": times(float(row["together"])),
                "gain": float(row["together"]),
            }
            for row in steps[:_MAX_ROWS]
        ],
        "assumptions": [str(text) for text in what_if.get("assumptions") or []],
    }


def _timeline(record: Record) -> dict[str, Any] | None:
    timeline = record.timeline
    if not timeline or not timeline.get("windows"):
        return None
    sites = [f"{site['file']}:{site['line']}" for site in timeline.get("sites", [])]
    windows, room = [], _MAX_SPANS
    for window in timeline["windows"]:
        lanes = []
        for lane in window["lanes"]:
            spans = [_span(span, len(sites)) for span in lane["spans"][:room]]
            room -= len(spans)
            if spans:
                lanes.append({"name": str(lane["name"]), "spans": spans})
        windows.append(
            {
                "start": float(window["start_s"]),
                "end": float(window["end_s"]),
                "steps": [[float(start), float(end)] for start, end in window["steps"][:2000]],
                "lanes": lanes,
            }
        )
    return {"sites": sites, "windows": windows}


def _span(span: list[Any], sites: int) -> list[Any]:
    start, end, account, site, name = span[:5]
    account = _RAW.get(account, account)
    known = account if account in ACCOUNTS else "python"
    return [float(start), float(end), known, int(site) if 0 <= int(site) < sites else -1, str(name)]


def _step_times(record: Record) -> dict[str, Any] | None:
    values = [float(value) for value in record.step_times[:_MAX_POINTS]]
    if len(values) < 2:
        return None
    ordered = sorted(value for value in values if math.isfinite(value)) or [0.0]
    return {
        "ms": [round(value * 1e3, 4) for value in values],
        "steps": max(record.steps, len(values)),
        "median": seconds(ordered[len(ordered) // 2]),
        "slow": seconds(ordered[int(len(ordered) * 0.95)]),
        "slowest": seconds(ordered[-1]),
        # One step of a second must not make a flat line of a thousand of a millisecond.
        "top": round(min(ordered[-1], 4 * ordered[int(len(ordered) * 0.95)]) * 1e3, 4),
    }


def _memory(record: Record) -> dict[str, Any] | None:
    points = [point for point in record.memory[:_MAX_POINTS] if point[0] is not None]
    if len(points) < 2:
        return None
    host = [point[1] for point in points]
    device = [point[2] for point in points]
    return {
        "at": [point[0] for point in points],
        "host": host,
        "device": device if any(value is not None for value in device) else None,
        "host_peak": size(int(max((value or 0 for value in host), default=0))),
        "device_peak": size(int(max((value or 0 for value in device), default=0))),
    }


def _where(row: dict[str, Any]) -> str:
    return f"{row['file']}:{row['line']}" if row.get("file") else ""


def _traces(record: Record) -> list[dict[str, Any]]:
    """The user's functions that were traced again, the dearest first; those traced once say nothing."""
    rows = [
        row
        for row in record.tables.get("traces", [])
        if (row["traces"] > 1 or row["objects"] > 1) and "site-packages" not in str(row.get("file"))
    ]
    return [
        {
            "function": str(row["function"]),
            "where": _where(row),
            "traces": int(row["traces"]),
            "time": seconds(float(row["seconds"])),
            "objects": int(row["objects"]),
            "changes": [[str(c["argument"]), str(c["old"]), str(c["new"])] for c in row.get("changes", [])],
        }
        for row in rows[:_MAX_ROWS]
    ]


def _sites(record: Record, table: str) -> list[list[str]]:
    return [
        [
            _where(row),
            str(row.get("function", "")),
            f"{int(row['count']):,}",
            size(int(row["bytes"])),
            seconds(float(row["seconds"])),
        ]
        for row in record.tables.get(table, [])[:_MAX_ROWS]
    ]


def _callbacks(record: Record) -> list[list[str]]:
    return [
        [f"{row['callback']}.{row['hook']}", _where(row), f"{int(row['calls']):,}", seconds(row["seconds"])]
        for row in record.tables.get("callbacks", [])[:_MAX_ROWS]
    ]


def _functions(record: Record) -> list[list[str]]:
    return [
        [
            str(row["function"]) + (" (XLA)" if row.get("jit_compile") else ""),
            _where(row),
            f"{int(row['calls']):,}",
            seconds(float(row["graph_s"])),
            seconds(float(row["seconds"])),
        ]
        for row in record.tables.get("functions", [])[:_MAX_ROWS]
    ]


def _environment(record: Record) -> list[list[str]]:
    device = record.device
    many = f"{device.count} x " if device.count > 1 else ""
    found = [["device", f"{many}{device.name} ({device.kind.replace('_', ' ').lower()})"]]
    if device.utilisation is not None:
        found.append(["device load by its driver", f"{device.utilisation:.0%}"])
    if device.memory_peak:
        found.append(["device memory, peak", size(device.memory_peak)])
    found += [[name, str(value)] for name, value in record.versions.items() if name != "python"]
    for name, value in record.environment.items():
        found.append([str(name), size(int(value)) if name == "memory" else str(value)])
    if "python" not in record.environment and "python" in record.versions:
        found.append(["python", record.versions["python"]])
    return [*found, ["run", record.id]]


def _notes(record: Record) -> list[str]:
    of_findings = dict.fromkeys(str(f.detail["note"]) for f in record.findings if "note" in f.detail)
    return [*map(str, record.notes), *of_findings]


def portable(value: Any) -> Any:
    """The value without what a page cannot carry: NaN, infinity, bytes of file names that are no characters."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {portable(str(key)): portable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [portable(item) for item in value]
    return value
