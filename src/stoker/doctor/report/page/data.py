"""The data of the page, as plain JSON values: a record's figures in words, sorted and cut to a manageable size.

All values become strings, numbers or lists here, so that the page's script only has to place them.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from typing import Any

from stoker.doctor.probes.parts.environment import OTHER_WORK
from stoker.doctor.report.headline import sentence
from stoker.doctor.report.page import tables
from stoker.doctor.report.page.before_after import examples
from stoker.doctor.report.page.findings import excerpts, findings, order
from stoker.doctor.report.page.memory import memory_book
from stoker.doctor.report.page.pipelines import pipelines
from stoker.doctor.report.page.tunings import tunings
from stoker.doctor.report.words import MEANINGS, list_notes, rate
from stoker.records import ACCOUNTS, Record, SpanRow
from stoker.units import duration, size

_MAX_SPANS = 8000
_MAX_POINTS = 1024
# The recorder's raw accounts, by their names in the ledger.
_RAW = {"graph": "compute", "eager": "dispatch"}


def run_data(record: Record) -> dict[str, Any]:
    """Return all sections of a run's page."""
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
        "examples": examples({finding.kind for finding in record.findings}),
        "order": order(record),
        "traces": tables.traces(record),
        "pipelines": pipelines(record),
        "tunings": tunings(record),
        "copies": tables.sites(record.tables.copies),
        "reads": tables.sites(record.tables.syncs),
        "callbacks": tables.callbacks(record),
        "functions": tables.functions(record),
        "checkpoints": tables.sites(record.tables.checkpoints),
        "memory": _memory(record),
        "memory_book": memory_book(record),
        "environment": _environment(record),
        "notes": list_notes(record),
    }


def program(record: Record) -> str:
    """Return the command line of the run."""
    return shlex.join([record.program, *record.argv])


def facts(record: Record) -> list[list[str]]:
    """Return the figures under the sentence: names and values."""
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
        found.append(["state", "did not end; this is its last save"])
    elif record.exit_code:
        found.append(["exit code", str(record.exit_code)])
    if record.started:
        found.append(["started", record.started.replace("T", " ").replace("Z", " UTC")])
    return found


def accounts(record: Record) -> list[dict[str, Any]]:
    """Return where the time went, longest first."""
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
    if timeline is None or not timeline.windows:
        return None
    sites = [f"{site.file}:{site.line}" for site in timeline.sites]
    windows, room = [], _MAX_SPANS
    for window in timeline.windows:
        lanes = []
        for lane in window.lanes:
            spans = [_span(span) for span in lane.spans[:room]]
            room -= len(spans)
            if spans:
                lanes.append({"name": lane.name, "spans": spans})
        windows.append(
            {
                "start": window.start_s,
                "end": window.end_s,
                "steps": window.steps[:2000],
                "lanes": lanes,
            }
        )
    return {"sites": sites, "windows": windows}


def _span(span: SpanRow) -> list[Any]:
    account = _RAW.get(span.account, span.account)
    return [span.start, span.end, account if account in ACCOUNTS else "python", max(-1, span.site), span.name]


def _step_times(record: Record) -> dict[str, Any] | None:
    values = record.step_times[:_MAX_POINTS]
    if len(values) < 2:
        return None
    ordered = sorted(value for value in values if math.isfinite(value)) or [0.0]
    return {
        "ms": [round(value * 1e3, 4) for value in values],
        "steps": max(record.steps, len(values)),
        "median": duration(ordered[len(ordered) // 2]),
        "slow": duration(ordered[int(len(ordered) * 0.95)]),
        "slowest": duration(ordered[-1]),
        # A single step of a second must not flatten the curve of a thousand steps of a millisecond.
        "top": round(min(ordered[-1], 4 * ordered[int(len(ordered) * 0.95)]) * 1e3, 4),
    }


def _memory(record: Record) -> dict[str, Any] | None:
    points = [point for point in record.memory[:_MAX_POINTS] if point.at_s is not None]
    if len(points) < 2:
        return None
    host = [point.process for point in points]
    device = [point.device for point in points]
    return {
        "at": [point.at_s for point in points],
        "host": host,
        "device": device if any(value is not None for value in device) else None,
        "host_peak": size(max(value or 0 for value in host)),
        "device_peak": size(max(value or 0 for value in device)),
    }


def _environment(record: Record) -> list[list[str]]:
    device = record.device
    many = f"{device.count} x " if device.count > 1 else ""
    found = [["device", f"{many}{device.name} ({device.kind.replace('_', ' ').lower()})"]]
    if device.utilisation is not None:
        found.append(["device load according to its driver", f"{device.utilisation:.0%}"])
    if device.memory_peak:
        found.append(["device memory, peak", size(device.memory_peak)])
    found += [[name, value] for name, value in record.versions.items() if name != "python"]
    for name, value in record.environment.items():
        found.append([name, _fact(name, value)])
    if "python" not in record.environment and "python" in record.versions:
        found.append(["python", record.versions["python"]])
    return [*found, ["run", record.id]]


def _fact(name: str, value: Any) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    if name == "memory":
        return size(value)
    return f"{value:.0%} of the processors" if name == OTHER_WORK else str(value)


def make_portable(value: Any) -> Any:
    """Return the value without what a page cannot hold: NaN, infinity, undecodable bytes of file names."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {make_portable(str(key)): make_portable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [make_portable(item) for item in value]
    return value
