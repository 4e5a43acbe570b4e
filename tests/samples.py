"""Records and measurements made by hand, for tests that need no TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any

from stoker.doctor.probes.measurements import Books, Measurements, ProbePart
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.recorder import ACCOUNT_NAMES
from stoker.records import (
    Device,
    Excerpt,
    Finding,
    MemoryBook,
    MemoryRow,
    Record,
    Repairs,
    Tables,
    Timeline,
    WhatIf,
    read,
)

SECOND = 1_000_000_000


def sample_finding(**changes: Any) -> Finding:
    finding = Finding(
        kind="sync-in-loop",
        code="STK101",
        file="train.py",
        line=42,
        column=11,
        function="train",
        source="print(loss.numpy())",
        title="A tensor is read back to the host in the loop",
        remedy="Read every N steps.",
        count=300,
        seconds=5.0,
        wait_s=4.9,
        copy_s=0.1,
        lost_s=5.0,
        bytes=1200,
        what_if=WhatIf(3.1, 2.6, 3.5),
    )
    return dataclasses.replace(finding, **changes)


def sample_record(**changes: Any) -> Record:
    record = Record(
        id="20261115-210754-3fa9",
        program="train.py",
        argv=["--epochs", "3"],
        exit_code=0,
        versions={"stoker": "0.1.0", "tensorflow": "2.21.0", "keras": "3.15.1", "python": "3.11.7"},
        device=Device("Some CPU", "CPU", 1, 0.21),
        wall_s=12.3,
        steps=300,
        steps_per_s=24.4,
        examples_per_s=780.0,
        accounts={
            "startup": 2.1,
            "trace": 0.8,
            "input": 1.0,
            "transfer": 0.1,
            "sync": 5.0,
            "compute": 2.2,
            "dispatch": 0.3,
            "checkpoint": 0.0,
            "python": 0.8,
        },
        findings=[sample_finding()],
        started="2026-11-15T21:07:54Z",
    )
    return dataclasses.replace(record, **sections(changes))


def sample_memory_book() -> MemoryBook:
    """A book of one device: 11.2 of 15.0 GiB."""
    rows = [
        (
            48,
            "model/conv_stack",
            "activations",
            5.0,
            "float32",
            "[256,112,112,64]",
            "model/conv_stack/Conv2D",
        ),
        (52, "model/head", "activations", 2.1, "float32", "[256,56,56,64]", "model/head/Relu"),
        (60, "", "optimizer", 1.6, "float32", "[64,64,3,3]", "adam/kernel_momentum:0"),
        (48, "model/conv_stack", "weights", 1.5, "float32", "[64,64,3,3]", "kernel:0"),
        (0, "", "other", 1.0, "", "", "rounding up by the allocator, and unknown owners"),
    ]
    owners = [
        {
            "file": "train.py" if line else "",
            "line": line,
            "function": "build" if line else "",
            "layer": layer,
            "role": role,
            "bytes": int(size * 2**30),
            "count": 2,
            "largest": {"shape": shape, "dtype": dtype, "op": op},
        }
        for line, layer, role, size, dtype, shape, op in rows
    ]
    peak = sum(int(row[3] * 2**30) for row in rows)
    curve = [
        {"at_ms": float(n), "bytes": [2**30, 2**30, n * 2**27, 2**28 * min(n, 20 - n), 0, 2**27, 0, 2**26]}
        for n in range(20)
    ]
    device = {
        "device": "/GPU:0",
        "peak_bytes": peak,
        "capacity_bytes": 15 * 2**30,
        "fragmentation": 0.25,
        "at_peak": owners,
        "curve": curve,
        "run_peak_bytes": peak,
    }
    return read(MemoryBook, {"device": [device]})


def sections(values: dict[str, Any]) -> dict[str, Any]:
    """Sections of a record given as in its JSON, made into what a record has."""
    made = dict(values)
    kinds = {"tables": Tables, "timeline": Timeline, "what_if": Repairs}
    for name, kind in kinds.items():
        if isinstance(values.get(name), dict):
            made[name] = read(kind, values[name])
    if "memory" in values:
        made["memory"] = [MemoryRow(*point) for point in values["memory"]]
    if "sources" in values:
        made["sources"] = [read(Excerpt, source) for source in values["sources"]]
    return made


def sample_timeline(windows: int = 2, steps: int = 4) -> dict[str, Any]:
    """As JSON: windows of steps as a loop with a read in it leaves them: 10 ms of host, then 30 ms of waiting."""
    made = []
    for number in range(windows):
        start = 3.0 + number * 4.0
        host, device, input_, marks = [], [], [], []
        for step in range(steps):
            t = start + step * 0.040
            marks.append([round(t, 6), round(t + 0.040, 6)])
            input_.append([round(t, 6), round(t + 0.004, 6), "input", 1, "next batch", 0.0])
            host.append([round(t, 6), round(t + 0.004, 6), "input", 1, "next batch", 0.0])
            host.append([round(t + 0.004, 6), round(t + 0.008, 6), "python", -1, "", 0.0])
            host.append([round(t + 0.008, 6), round(t + 0.010, 6), "graph", 2, "train_step", 0.0])
            host.append([round(t + 0.010, 6), round(t + 0.040, 6), "sync", 0, "numpy", 0.030])
            device.append([round(t + 0.009, 6), round(t + 0.039, 6), "compute", -1, "", 0.0])
        lanes = [("host", host), ("input", input_), ("device", device)]
        made.append(
            {
                "start_s": start,
                "end_s": round(start + steps * 0.040, 6),
                "steps": marks,
                "lanes": [{"name": name, "spans": spans} for name, spans in lanes],
            }
        )
    sites = [
        {"file": "train.py", "line": 42, "function": "train"},
        {"file": "data.py", "line": 7, "function": "pipeline"},
        {"file": "train.py", "line": 40, "function": "train"},
    ]
    return {"sites": sites, "windows": made}


def sample_simulated_record(**changes: Any) -> Record:
    """A record with everything the simulation adds: step times, spans, prices and the order of repair."""
    order = [{"kind": "sync-in-loop", "file": "train.py", "line": 42, "alone": 3.1, "together": 3.1}]
    what_if = {
        "all": {"speedup": 3.1, "low": 2.6, "high": 3.5},
        "order": order,
        "assumptions": ["steps a second of the stepping phase; start-up is left out"],
    }
    times = [0.040 + 0.001 * (number % 5) for number in range(300)]
    values = {"step_times": times, "timeline": sample_timeline(), "what_if": what_if}
    return sample_record(**{**values, **changes})


def measurements(*parts: ProbePart) -> Measurements:
    """A run of 10 s and 100 steps in which nothing happened, but for these parts."""
    return Measurements([books(python=10 * SECOND), StepsPart(count=100, per_s=10.0), *parts])


def books(**totals: int) -> Books:
    """The books of a run of 10 s: nanoseconds by raw account."""
    return Books(wall_ns=10 * SECOND, totals=dict.fromkeys(ACCOUNT_NAMES, 0) | totals)
