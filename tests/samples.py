"""Records and measurements made by hand, for tests that need no TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any

from stoker.probes.recorder import ACCOUNT_NAMES
from stoker.probes.session import Measurements
from stoker.probes.timeline import Summary
from stoker.records import Device, Finding, Record, WhatIf

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
    return dataclasses.replace(record, **changes)


def measurements(**changes: Any) -> Measurements:
    """A run of 10 s and 100 steps in which nothing happened, but for the changes."""
    totals = dict.fromkeys(ACCOUNT_NAMES, 0) | changes.pop("totals", {"python": 10 * SECOND})
    blank = Measurements(
        wall_ns=10 * SECOND,
        totals=totals,
        tallies={},
        traced=[],
        called=[],
        pipelines=[],
        callbacks=[],
        predicts={},
        fits={},
        eager_ns=0,
        eager_op_ns=0,
        steps=100,
        steps_per_s=10.0,
        examples_per_s=None,
        windows=Summary(),
        device_kind="CPU",
        device_name="Some CPU",
        device_count=1,
        gpu_load=None,
        gpu_memory_peak=0,
        device_rows=[],
        versions={},
        notes=[],
        columns={},
        users_functions=frozenset(),
        is_async=False,
    )
    return dataclasses.replace(blank, **changes)
