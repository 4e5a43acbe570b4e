"""The record of measurements with something in every part: its JSON is a contract."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stoker.doctor.diagnosis.record import RunFacts, record
from stoker.doctor.probes.eager_ops import Dispatched
from stoker.doctor.probes.graph_calls import CalledFunction, Execution
from stoker.doctor.probes.keras_loop import CallbackTime, FitCalls, PredictCalls
from stoker.doctor.probes.loop_turns import UserFrame, UserLoop
from stoker.doctor.probes.measurements import Books, Measurements, ProbePart
from stoker.doctor.probes.parts import steps as steps_part
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.eager import EagerPart
from stoker.doctor.probes.parts.environment import OTHER_WORK, EnvironmentPart
from stoker.doctor.probes.parts.functions import CallsPart, TracesPart
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.steps import Phase, StepsPart
from stoker.doctor.probes.parts.tallies import CheckpointsPart, CopiesPart, ReadsPart, TallyPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.probes.pipelines import Pipeline, StageTime, UserStage
from stoker.doctor.probes.profiler_trace import WindowSummary
from stoker.doctor.probes.recorder import ACCOUNT_NAMES, EAGER, GRAPH, INPUT, PYTHON, SYNC, TRANSFER, Tally
from stoker.doctor.probes.retrace import ArgumentChange, TracedFunction
from stoker.doctor.probes.spans import Span, Window
from stoker.records import Record, TunerChange, TuningRow
from tests.samples import SECOND, measurements

EXPECTED = Path(__file__).with_name("record.json")
FACTS = RunFacts("20261118-000000-abcd", "train.py", ["--epochs", "3"], "2026-11-18T00:00:00Z")
LOOP = ("train.py", 10, "train")
STEP = ("train.py", 3, "step")
DATA = ("data.py", 5, "pipeline")
TURNING = UserLoop("train.py", 9, "train", 0, 50)
NO_TIME = dict.fromkeys(ACCOUNT_NAMES, 0)

CALLED = CalledFunction(
    "step",
    STEP,
    jit_compile=True,
    calls=300,
    ns=3 * SECOND,
    graph_ns=2 * SECOND,
    dispatch_ns=SECOND,
    first_dispatch_ns=SECOND // 10,
    batch=32,
    rank=0,
    sites={LOOP: 3},
    executions={b"a": Execution(300, 2 * SECOND, SECOND // 2)},
)
TRACED = TracedFunction(
    "step",
    STEP,
    objects=1,
    traces=10,
    retraces=9,
    ns=SECOND,
    repeated_ns=SECOND // 2,
    updates_variables=True,
    variable_bytes=4000,
    collectives=12,
    collective_bytes=1200,
    sites={LOOP: 10},
    changes=[ArgumentChange("n", "1", "2", True)],
)
PIPELINE = Pipeline(
    [UserStage("Batch", DATA), UserStage("Map", ("data.py", 4, "pipeline"), python=True)],
    iterators=2,
    elements=100,
    wait_ns=SECOND,
    first_ns=SECOND // 4,
    teardowns=5,
    teardown_ns=SECOND,
    ran=[("Root", 100, 5), ("Map", 100, 9)],
    sites={LOOP: 3},
)
SUMMARY = WindowSummary(
    windows=2,
    window_ns=1000,
    graph_ns=500,
    graph_input_ns=100,
    graph_communication_ns=20,
    graph_busy_ns=300,
    graph_calls=7,
    graph_quick_ns=40,
    eager_ns=100,
    eager_kernel_ns=25,
    eager_kernels=4,
    eager_floor_ns=3,
    eager_calm_ns=2,
    eager_wide_ns=1,
    busy_ns=400,
    stages={
        "Iterator::Root::Map": StageTime(10, SECOND),
        "Iterator::Root::BatchV2": StageTime(5, 2 * SECOND),
    },
)
WINDOW = Window(
    SECOND,
    0,
    spans=[
        Span(SECOND, 2 * SECOND, PYTHON),
        Span(2 * SECOND, 3 * SECOND, INPUT, PIPELINE, "first element"),
        Span(3 * SECOND, 4 * SECOND, TRANSFER, LOOP, "ndarray"),
        Span(4 * SECOND, 5 * SECOND, GRAPH, CALLED, "step"),
        Span(5 * SECOND, 6 * SECOND, SYNC, LOOP, "numpy", SECOND // 2),
        Span(6 * SECOND, 7 * SECOND, EAGER, TRACED, "tape"),
    ],
    ends=[(4 * SECOND, 0, 1, TURNING), (7 * SECOND, 0, 1, TURNING)],
    end=8 * SECOND,
    cpu_ns=3 * SECOND,
    delay_ns=SECOND // 3,
)


def tallied() -> Iterable[ProbePart]:
    """The parts of the probes that tally by line."""
    read = {"how": "numpy", "shape": [], "dtype": "float32"}
    yield ReadsPart(
        {LOOP: Tally(count=100, ns=SECOND, wait_ns=SECOND // 2, lost_ns=SECOND, bytes=400, detail=read)}
    )
    copied = {"type": "ndarray", "shape": [32], "dtype": "float32"}
    copy = Tally(count=100, ns=SECOND // 5, lost_ns=SECOND // 5, bytes=4096, same=100, detail=copied)
    yield CopiesPart({LOOP: copy})
    save = Tally(count=50, ns=SECOND, lost_ns=SECOND, detail={"what": "save"})
    yield CheckpointsPart({("train.py", 15, "train"): save})
    frames = (UserFrame(("net.py", 7, "layer"), ()), UserFrame(("train.py", 12, "train"), (TURNING,)))
    tape = Tally(count=100, detail={"inside": 0, "loop": TURNING})
    yield EagerPart(
        ops=1500,
        ns=2 * SECOND,
        op_ns=SECOND,
        stacks={frames: Dispatched(1500, SECOND, samples=40, between=100)},
        tapes={("train.py", 11, "train"): tape},
    )


def described() -> Iterable[ProbePart]:
    """The parts of the probes that describe functions, pipelines, loops and steps."""
    yield TracesPart([TRACED], frozenset({STEP}))
    yield CallsPart([CALLED])
    tuning = TuningRow(
        before=1.0,
        after=2.0,
        changes=[TunerChange(name="prefetch", stage="Batch", before=1.0, after=2.0)],
    )
    yield InputPart([PIPELINE], [(DATA, tuning)])
    hook = ("train.py", 20, "on_train_batch_end")
    yield KerasPart(
        [CallbackTime("Logger", "on_train_batch_end", hook, True, 100, SECOND)],
        {("train.py", 30, "main"): PredictCalls(calls=50, rows=50, ns=2 * SECOND, graph_ns=SECOND // 2)},
        {("train.py", 31, "main"): FitCalls(calls=1, ns=SECOND, dispatch_ns=10, graph_ns=20)},
    )
    phase = Phase(
        rank=0,
        sources=frozenset({TURNING}),
        first_ns=SECOND,
        last_ns=9 * SECOND,
        ns=8 * SECOND,
        drain_ns=SECOND // 8,
        steps=99,
        totals=NO_TIME | {"graph": 4 * SECOND, "sync": SECOND, "python": SECOND},
        times=[80_000_000, 81_000_000],
    )
    yield StepsPart(100, 12.34567, 395.0612, ticks=100, trains=True, phase=phase, windows=[WINDOW])


def measured() -> Measurements:
    """A run in which every probe saw something."""
    totals = {"startup": 2, "graph": 5, "eager": 1, "sync": 1, "python": 1}
    books = Books(
        start_ns=SECOND // 2,
        wall_ns=10 * SECOND,
        totals=NO_TIME | {name: seconds * SECOND for name, seconds in totals.items()},
        versions={"tensorflow": "2.21.0", "keras": "3.15.1"},
        notes=["something was noted"],
        columns={LOOP: 9},
    )
    device = DevicePart(
        name="Some CPU",
        load=0.25,
        memory_peak=1024,
        memory=[(0.5, 1000, None), (1.5, 2000, 10)],
        rows=[{"name": "/GPU:0", "syncs": 3}],
        is_async=True,
        intra_op_threads=4,
    )
    environment = EnvironmentPart({"cores": 2, OTHER_WORK: 0.1}, workers=2)
    return Measurements([books, device, environment, WindowsPart(SUMMARY), *tallied(), *described()])


def test_the_record_has_what_every_part_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(steps_part, "usable_cores", lambda: 2)
    for name in ("train.py", "data.py", "net.py"):
        Path(name).write_text("".join(f"line {number}\n" for number in range(1, 41)), encoding="utf-8")
    data = record(FACTS, measured(), "running").to_json()
    data["versions"] |= {"stoker": "", "python": ""}
    assert json.dumps(data, indent=1) + "\n" == EXPECTED.read_text(encoding="utf-8")


@dataclass(frozen=True)
class SummariesPart(TallyPart):
    """The part of a probe that no other module knows."""

    table = "summaries"


def test_a_new_part_writes_a_table_that_nothing_else_names() -> None:
    part = SummariesPart({LOOP: Tally(count=5, ns=SECOND)})
    made = record(FACTS, measurements(part), "running")
    rows = [
        {
            "file": "train.py",
            "line": 10,
            "function": "train",
            "count": 5,
            "seconds": 1.0,
            "wait_s": 0.0,
            "bytes": 0,
        }
    ]
    written = json.loads(json.dumps(made.to_json()))
    assert written["tables"]["summaries"] == rows
    assert Record.from_json(written).to_json()["tables"]["summaries"] == rows
