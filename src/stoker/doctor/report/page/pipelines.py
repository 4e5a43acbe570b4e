"""The tf.data pipelines of a run, as written and as TensorFlow ran them, with the slow stage marked."""

from __future__ import annotations

from typing import Any

from stoker.doctor.probes.pipelines import BUFFERS, stage_name
from stoker.doctor.stall import stalls
from stoker.doctor.stalls.python_input_pipeline import STALL as PYTHON_INPUT
from stoker.records import Finding, PipelineRow, PipelineStage, Record
from stoker.units import duration, quantity

_MAX_PIPELINES = 20


def pipelines(record: Record) -> dict[str, Any]:
    """Return `written`, the pipelines with their sources first, and `ran`, the trees of the iterators."""
    inputs = {stall.slug for stall in stalls().values() if stall.account == "input"}
    blamed = {(f.file, f.line): f for f in record.findings if f.kind in inputs}
    shown = sorted(record.tables.pipelines, key=lambda row: -row.wait_s)[:_MAX_PIPELINES]
    return {
        "written": [_show_pipeline(row, blamed) for row in shown],
        "ran": _list_profiled_pipelines(record),
    }


def _show_pipeline(row: PipelineRow, blamed: dict[tuple[str, int], Finding]) -> dict[str, Any]:
    slow = _find_blamed_stage(row.stages, blamed)
    stages = [
        {
            "name": stage.name,
            "where": stage.where,
            "python": stage.python,
            "slow": stage is slow,
        }
        for stage in reversed(row.stages)
    ]
    waited = f"{duration(row.wait_s)} waited for"
    facts = [quantity(row.elements, "element"), waited] if row.elements else ["read inside a graph"]
    if row.first_wait_s:
        facts.append(f"{duration(row.first_wait_s)} of it for the first element")
    return {"stages": stages, "facts": " · ".join(facts)}


def _find_blamed_stage(
    stages: list[PipelineStage], blamed: dict[tuple[str, int], Finding]
) -> PipelineStage | None:
    """Return the stage that a finding is about: the one at its line or, among several, the one it names."""
    for stage in stages:
        finding = blamed.get((stage.file or "", stage.line or 0))
        if finding is None:
            continue
        there = [s for s in stages if (s.file, s.line) == (finding.file, finding.line)]
        python = [s for s in there if s.python]
        if finding.kind == PYTHON_INPUT.slug and python:
            return python[0]
        named = [s for s in there if s.name == finding.detail.get("slow_stage")]
        return (named or there)[0]
    return None


def _list_profiled_pipelines(record: Record) -> list[dict[str, Any]]:
    """Turn paths such as `Iterator::Root::Prefetch::BatchV2` into trees."""
    times: dict[tuple[str, ...], tuple[float, int]] = {}
    for row in record.tables.stages:
        parts = tuple(row.path.split("::")[1:])
        if parts:
            times[parts] = (max(0.0, row.self_s), row.calls)
    total = sum(own for own, _ in times.values()) or 1.0
    slow = max(
        (parts for parts in times if stage_name(parts[-1]) not in BUFFERS),
        key=lambda parts: times[parts][0],
        default=None,
    )
    nodes: dict[tuple[str, ...], dict[str, Any]] = {}
    roots: list[dict[str, Any]] = []
    prefixes = {path[:depth] for path in times for depth in range(1, len(path) + 1)}
    for parts in sorted(prefixes, key=len):
        own, calls = times.get(parts, (0.0, 0))
        node = nodes[parts] = {
            "name": stage_name(parts[-1]),
            "share": own / total,
            "time": duration(own),
            "calls": calls,
            "buffer": stage_name(parts[-1]) in BUFFERS,
            "slow": parts == slow,
            "children": [],
        }
        (nodes[parts[:-1]]["children"] if len(parts) > 1 else roots).append(node)
    return roots
