"""What a run leaves behind, as typed values that every part of Stoker shares. It imports nothing else of ours.

| module | subject |
|---|---|
| record | the run: what ran, on what, the ledger, and the sections below |
| finding | a finding, its price, and the order of repair |
| tables | the evidence for the findings |
| memory | who owned the device's memory at its peak |
| timeline | windows of steps, span by span |
| reading, writing | converting from JSON and back, by the dataclasses' annotations; damage is reported in one line |
| section | the base of all these parts |

The JSON form is a contract that other programs read: fields are added, never renamed. A field that a later Stoker adds
is kept when an older one reads the record and writes it again.

Why not msgspec? It reads a record of 70 KiB in 0.4 ms instead of 4 ms, and one of 5 MB in 0.26 s instead of 0.68 s. But
it would be the first compiled library of the base install, its import of 33 ms would make `stoker check` (87 ms) a
third slower to start, and it drops fields that it does not know.
"""

from __future__ import annotations

from stoker.records.finding import (
    Change,
    Detail,
    Finding,
    FindingKey,
    RepairPlace,
    Repairs,
    TunerGain,
    WhatIf,
)
from stoker.records.memory import (
    ROLES,
    DeviceMemory,
    FailedAllocation,
    LargestTensor,
    MemoryBook,
    MemoryOwner,
    MemoryPoint,
    Saving,
)
from stoker.records.reading import Damaged, read
from stoker.records.record import ACCOUNTS, SCHEMA, Device, Excerpt, MemoryRow, Record, speedup_without
from stoker.records.tables import (
    CallbackRow,
    ChangeRow,
    EpochRow,
    ExperimentRow,
    FunctionRow,
    LeftByTuner,
    PipelineRow,
    PipelineStage,
    RanStage,
    RepairedLine,
    StageRow,
    SteppingRow,
    Tables,
    TallyRow,
    TraceRow,
    TunedStage,
    TunerChange,
    TuningRow,
    VerifiedRow,
    WindowSums,
    WorkerRow,
)
from stoker.records.timeline import (
    Lane,
    ProfilerEvent,
    ProfilerWindow,
    SpanRow,
    StepRow,
    Timeline,
    TimelineSite,
    TimelineWindow,
)
from stoker.records.writing import plain

__all__ = [
    "ACCOUNTS",
    "ROLES",
    "SCHEMA",
    "CallbackRow",
    "Change",
    "ChangeRow",
    "Damaged",
    "Detail",
    "Device",
    "DeviceMemory",
    "EpochRow",
    "Excerpt",
    "ExperimentRow",
    "FailedAllocation",
    "Finding",
    "FindingKey",
    "FunctionRow",
    "Lane",
    "LargestTensor",
    "LeftByTuner",
    "MemoryBook",
    "MemoryOwner",
    "MemoryPoint",
    "MemoryRow",
    "PipelineRow",
    "PipelineStage",
    "ProfilerEvent",
    "ProfilerWindow",
    "RanStage",
    "Record",
    "RepairPlace",
    "RepairedLine",
    "Repairs",
    "Saving",
    "SpanRow",
    "StageRow",
    "StepRow",
    "SteppingRow",
    "Tables",
    "TallyRow",
    "Timeline",
    "TimelineSite",
    "TimelineWindow",
    "TraceRow",
    "TunedStage",
    "TunerChange",
    "TunerGain",
    "TuningRow",
    "VerifiedRow",
    "WhatIf",
    "WindowSums",
    "WorkerRow",
    "plain",
    "read",
    "speedup_without",
]
