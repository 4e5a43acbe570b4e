"""Records for pages: one with everything, one that is hostile, one that is huge, one as the first Stoker wrote it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from stoker.records import Record
from tests.samples import (
    sample_finding,
    sample_memory_book,
    sample_record,
    sample_simulated_record,
    sample_timeline,
)

HOSTILE = (
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "javascript:window.hacked=1",
    "\"'><svg onload=window.hacked=1>",
    "<!--<script>window.hacked=1</script>",
    "\u2028\u2029]]>{{data}}${data}",
    "\udcff\udc80.py",
)


def source(first: int, count: int) -> dict[str, Any]:
    lines = ["    for step, batch in enumerate(dataset):  # the loop", "        loss = train_step(batch)"]
    text = [
        lines[n % 2] if first + n != 42 else '        print(f"loss {loss.numpy():.3f}")' for n in range(count)
    ]
    return {"file": "train.py", "first": first, "lines": text}


def full_record(**changes: Any) -> Record:
    """Every section has something to show."""
    retrace = sample_finding(
        kind="retrace-shape",
        code="STK204",
        line=40,
        title="A changing tensor shape or dtype retraces the function",
        lost_s=1.1,
        what_if=None,
        detail={"changes": [{"argument": "tokens", "from": "int32[16, 31]", "to": "int32[16, 47]"}]},
    )
    small = sample_finding(kind="numpy-feed-in-loop", code="STK102", line=41, lost_s=0.01, what_if=None)
    site = {"file": "train.py", "line": 42, "function": "train"}
    change = {"argument": "tokens", "old": "int32[16, 31]", "new": "int32[16, 47]", "python": False}
    tables: dict[str, list[dict[str, Any]]] = {
        "traces": [
            {"function": "train_step", **site, "traces": 9, "retraces": 8, "objects": 1, "seconds": 0.8}
            | {"changes": [change]}
        ],
        "functions": [{"function": "train_step", **site, "calls": 300, "seconds": 2.5, "graph_s": 2.2}],
        "callbacks": [{"callback": "Plot", "hook": "on_epoch_end", **site, "calls": 3, "seconds": 0.2}],
        "pipelines": [
            {
                "stages": [{"name": "Batch", **site}, {"name": "from_generator", **site, "python": True}],
                "elements": 300,
                "wait_s": 1.0,
                "first_wait_s": 0.1,
            }
        ],
        "stages": [
            {"path": "Iterator::Root::Prefetch", "calls": 3, "self_s": 0.02},
            {"path": "Iterator::Root::Prefetch::BatchV2", "calls": 3, "self_s": 0.01},
            {"path": "Iterator::Root::Prefetch::BatchV2::Generator", "calls": 99, "self_s": 0.3},
        ],
        "tunings": [
            {
                **site,
                "before": 310.0,
                "after": 5900.0,
                "step_per_s": 820.0,
                "compared": 12,
                "changes": [{"name": "prefetch", "stage": "batch(32)", "before": 310.0, "after": 5900.0}],
                "left": [{"name": "cache", "stage": "map(scaled)", "why": "1.2 GiB do not fit"}],
                "stages": [
                    {"depth": 0, "stage": "zip()", "elements_per_s": 310.0},
                    {"depth": 1, "stage": "range()", "alone_per_s": 9e5, "core": 0.25, "element_bytes": 8.0},
                ],
                "tuned": [{"depth": 0, "stage": "prefetch(2)"}],
            }
        ],
        "copies": [{**site, "count": 300, "seconds": 0.1, "wait_s": 0.0, "bytes": 3_000_000}],
        "syncs": [{**site, "count": 300, "seconds": 5.0, "wait_s": 4.9, "bytes": 1200}],
    }
    values: dict[str, Any] = {
        "findings": [sample_finding(), retrace, small],
        "tables": tables,
        "sources": [source(34, 15)],
        "memory": [[0.2 * n, 4e8 + 1e6 * n, 2e8 if n > 20 else None] for n in range(60)],
        "memory_book": sample_memory_book(),
        "environment": {"platform": "Linux", "cores": 8, "memory": 25_000_000_000, "TF_XLA_FLAGS": "--x"},
        "notes": ["reads are cheap on a synchronous CPU"],
    }
    return sample_simulated_record(**{**values, **changes})


def hostile_record() -> Record:
    """The same record with markup, script and broken characters in every text that comes from the user."""
    plain = json.loads(json.dumps(full_record().to_json()))
    kept = {"schema", "kind", "path", "account", "state", "evidence", "versions", "role"}

    def poisoned(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: poisoned(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [poisoned(item, key) for item in value]
        if isinstance(value, str) and key not in kept:
            return value + "".join(HOSTILE)
        return value

    poison = poisoned(plain)
    poison["timeline"]["windows"] = plain["timeline"]["windows"]
    for window in poison["timeline"]["windows"]:
        for lane in window["lanes"]:
            for span in lane["spans"]:
                span[4] = HOSTILE[0]
    poison["environment"] = {text: text for text in HOSTILE}
    poison["sources"] = [
        {"file": finding["file"], "first": 36, "lines": [*HOSTILE, *HOSTILE]}
        for finding in poison["findings"]
    ]
    return Record.from_json(poison)


def huge_record(steps: int = 100_000, findings: int = 500) -> Record:
    """A long run of a large program: every list as long as a record may make it."""
    found = [
        sample_finding(
            file=f"package/module_{n % 40}.py",
            line=20 + n,
            source=f"loss_{n} = float(train_step(batch_{n}))",
            lost_s=0.5 / (1 + n),
            what_if=dataclasses.replace(sample_finding().what_if, speedup=1 + 0.5 / (1 + n)),  # type: ignore[type-var]
        )
        for n in range(findings)
    ]
    sources = [
        {
            "file": f.file,
            "first": f.line - 6,
            "lines": [f"        value_{k} = compute({k}, 'x')" for k in range(13)],
        }
        for f in found[:200]
    ]
    timeline = sample_timeline(windows=8, steps=55)
    return full_record(
        steps=steps,
        findings=found,
        sources=sources,
        timeline=timeline,
        step_times=[0.01 + 0.0001 * (n % 17) for n in range(512)],
        memory=[[float(n), 4e9 + 1e6 * n, 2e9] for n in range(256)],
        what_if={
            "all": {"speedup": 3.0, "low": 2.0, "high": 4.0},
            "order": [
                {"kind": f.kind, "file": f.file, "line": f.line, "alone": 1.2, "together": 2.0} for f in found
            ],
            "assumptions": [],
        },
    )


def first_record() -> dict[str, Any]:
    """As JSON of schema 1 before step times, timeline, prices, memory, sources and environment were kept."""
    data = json.loads(json.dumps(sample_record().to_json()))
    for name in (
        "step_times",
        "timeline",
        "what_if",
        "memory",
        "sources",
        "environment",
        "tables",
        "notes",
    ):
        del data[name]
    for finding in data["findings"]:
        del finding["what_if"], finding["detail"]
    return dict(data)
