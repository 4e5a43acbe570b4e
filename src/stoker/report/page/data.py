"""What the page shows, as plain JSON values: a record's figures in words, sorted, cut to a manageable size.

Everything is made a string, a number or a list here, so that the page's script only places it.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from typing import Any

from stoker.probes.environment import OTHER_WORK
from stoker.records import ACCOUNTS, Record
from stoker.report.headline import sentence
from stoker.report.page import tables
from stoker.report.page.before_after import remedies
from stoker.report.page.findings import excerpts, findings, order
from stoker.report.page.pipelines import pipelines
from stoker.report.words import MEANINGS, rate
from stoker.units import duration, size

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
        "findings": findings(record),
        "excerpts": excerpts(record),
        "remedies": remedies({finding.kind for finding in record.findings}),
        "order": order(record),
        "traces": tables.traces(record),
        "pipelines": pipelines(record),
        "copies": tables.sites(record, "copies"),
        "reads": tables.sites(record, "syncs"),
        "callbacks": tables.callbacks(record),
        "functions": tables.functions(record),
        "checkpoints": tables.sites(record, "checkpoints"),
        "memory": _memory(record),
        "environment": _environment(record),
        "notes": _notes(record),
    }


def program(record: Record) -> str:
    """The command line of the run."""
    return shlex.join([str(word) for word in (record.program, *record.argv)])


def facts(record: Record) -> list[list[str]]:
    """Figures under the sentence: name and value."""
    found = [["wall time", duration(record.wall_s)]]
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
            "time": duration(spent),
            "percent": f"{spent / wall:.1%}",
        }
        for name, spent in rows
        if spent / wall >= 0.0005
    ]


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
        "median": duration(ordered[len(ordered) // 2]),
        "slow": duration(ordered[int(len(ordered) * 0.95)]),
        "slowest": duration(ordered[-1]),
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
        found.append([str(name), _fact(str(name), value)])
    if "python" not in record.environment and "python" in record.versions:
        found.append(["python", record.versions["python"]])
    return [*found, ["run", record.id]]


def _fact(name: str, value: Any) -> str:
    if name == "memory":
        return size(int(value))
    return f"{float(value):.0%} of the processors" if name == OTHER_WORK else str(value)


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
