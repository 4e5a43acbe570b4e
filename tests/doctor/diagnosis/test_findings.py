"""From measurements to findings."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.doctor.diagnosis.findings import findings
from stoker.doctor.probes.eager_ops import Dispatched
from stoker.doctor.probes.graph_calls import CalledFunction
from stoker.doctor.probes.keras_loop import CallbackTime, FitCalls, PredictCalls
from stoker.doctor.probes.loop_turns import UserFrame, UserLoop
from stoker.doctor.probes.measurements import ProbePart
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.eager import EagerPart
from stoker.doctor.probes.parts.environment import OTHER_WORK, EnvironmentPart
from stoker.doctor.probes.parts.functions import CallsPart, TracesPart
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.steps import Phase, StepsPart
from stoker.doctor.probes.parts.tallies import CheckpointsPart, CopiesPart, ReadsPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.probes.pipelines import Pipeline, StageTime, UserStage
from stoker.doctor.probes.profiler_trace import WindowSummary
from stoker.doctor.probes.recorder import Tally
from stoker.doctor.probes.retrace import ArgumentChange, TracedFunction
from tests.samples import SECOND, measurements

LOOP = ("train.py", 10, "train")
STEP = ("train.py", 3, "step")


def kinds(*parts: ProbePart) -> list[str]:
    return [finding.kind for finding in findings(measurements(*parts))]


def test_nothing_found_in_a_clean_run() -> None:
    assert kinds() == []


@pytest.mark.parametrize(
    ("count", "lost", "found"),
    [(100, 1, True), (20, 1, True), (19, 1, False), (10, SECOND, True), (9, SECOND, False)],
)
def test_a_read_is_in_the_loop_if_frequent_or_dear(count: int, lost: int, found: bool) -> None:
    tally = Tally(count=count, ns=lost, lost_ns=lost)
    assert kinds(ReadsPart({LOOP: tally})) == (["sync-in-loop"] if found else [])


def test_findings_are_ordered_by_what_is_lost_not_by_what_it_took() -> None:
    reads = ReadsPart({LOOP: Tally(count=100, ns=5 * SECOND, wait_ns=5 * SECOND, lost_ns=SECOND // 10)})
    copies = CopiesPart({STEP: Tally(count=100, ns=SECOND, lost_ns=SECOND, bytes=400)})
    found = findings(measurements(reads, copies))
    assert [f.kind for f in found] == ["numpy-feed-in-loop", "sync-in-loop"]
    assert (found[1].seconds, found[1].wait_s, found[1].copy_s, found[1].lost_s) == (5.0, 5.0, 0.0, 0.1)
    assert (found[0].file, found[0].line, found[0].function, found[0].bytes) == ("train.py", 3, "step", 400)


def test_an_eager_step_is_shown_at_its_tape() -> None:
    step, layer = UserFrame(("train.py", 5, "step"), ()), UserFrame(("net.py", 7, "layer"), ())
    stacks = {(step,): Dispatched(900, SECOND), (layer, step): Dispatched(600, SECOND)}
    eager = EagerPart(ns=2 * SECOND, op_ns=SECOND, stacks=stacks, tapes={STEP: Tally(count=100)})
    (found,) = findings(measurements(eager))
    assert [part["line"] for part in found.detail["parts"]] == [5, 7]
    assert (found.kind, found.line, found.count, found.detail["ops_per_step"]) == (
        "eager-train-step",
        3,
        1500,
        15.0,
    )


def test_each_function_with_a_tape_has_a_finding_and_validation_has_none_of_it() -> None:
    training, validating = UserLoop("train.py", 20, "main", 0, 50), UserLoop("train.py", 30, "main", 60, 90)
    helper = UserFrame(("net.py", 7, "layer"), ())
    calls = [UserFrame(("train.py", line, "main"), (training,)) for line in (21, 22)]
    stacks = {
        (helper, UserFrame(("gan.py", 4, "train_g"), ()), calls[0]): Dispatched(1500, SECOND),
        (helper, UserFrame(("gan.py", 9, "train_d"), ()), calls[1]): Dispatched(2000, SECOND),
        (helper, UserFrame(("train.py", 24, "main"), (training,))): Dispatched(1000, SECOND),
        (helper, UserFrame(("train.py", 31, "main"), (validating,))): Dispatched(1000, SECOND),
    }
    tapes = {
        ("gan.py", 3, "train_g"): Tally(count=100, detail={"loop": None}),
        ("gan.py", 8, "train_d"): Tally(count=100, detail={"loop": None}),
        ("train.py", 23, "main"): Tally(count=100, detail={"loop": training}),
    }
    found = findings(
        measurements(
            EagerPart(ns=4 * SECOND, stacks=stacks, tapes=tapes),
            StepsPart(count=100, phase=Phase(sources=frozenset({training}))),
        )
    )
    assert {(f.kind, f.file, f.line, f.count) for f in found} == {
        ("eager-train-step", "gan.py", 3, 1500),
        ("eager-train-step", "gan.py", 8, 2000),
        ("eager-train-step", "train.py", 23, 1000),
        ("launch-bound", "train.py", 31, 1000),
    }


@pytest.mark.parametrize(
    ("between", "ticks", "found"),
    [(2, 100, []), (2, 3, []), (3, 3, ["launch-bound"]), (40, 100, ["launch-bound"])],
)
def test_what_is_built_between_two_trainings_is_no_part_of_the_steps(
    between: int, ticks: int, found: list[str]
) -> None:
    folds = UserLoop("train.py", 10, "main", 0, 50)
    stack = (UserFrame(("train.py", 3, "build"), ()), UserFrame(("train.py", 11, "main"), (folds,)))
    built = Dispatched(2000, SECOND, samples=40, between=between)
    steps = StepsPart(count=100, trains=True, ticks=ticks)
    assert kinds(EagerPart(ns=SECOND, stacks={stack: built}), steps) == found


@pytest.mark.parametrize(("between", "found"), [(1, []), (50, ["sync-in-loop"])])
def test_reads_in_one_place_between_two_steps_are_not_in_the_loop(between: int, found: list[str]) -> None:
    tally = Tally(count=137, ns=1000, first_end_ns=10, last_end_ns=20, between=between)
    steps = StepsPart(count=100, trains=True, ticks=100, phase=Phase(ns=SECOND, last_ns=SECOND))
    assert kinds(ReadsPart({STEP: tally}), steps) == found


@pytest.mark.parametrize(("ops", "found"), [(200, []), (2000, ["launch-bound"])])
def test_the_few_ops_of_keras_own_loop_are_not_the_users(ops: int, found: list[str]) -> None:
    """On a busy machine they took a quarter of the run; with `run_eagerly` there are many."""
    line = ("train.py", 39, "main")
    stacks: dict[tuple[UserFrame, ...], Dispatched] = {(UserFrame(line, ()),): Dispatched(ops, 3 * SECOND)}
    keras = KerasPart(fits={line: FitCalls(calls=1, ns=SECOND)})
    assert kinds(EagerPart(ns=3 * SECOND, stacks=stacks), keras) == found


@pytest.mark.parametrize(
    ("first", "last", "found"), [(1, 4, False), (1, 6, True), (6, 9, True), (11, 12, False)]
)
def test_work_before_and_after_the_steps_is_not_in_the_loop(first: int, last: int, found: bool) -> None:
    tally = Tally(count=100, ns=1, first_end_ns=first * SECOND, last_end_ns=last * SECOND)
    phase = Phase(first_ns=5 * SECOND, last_ns=10 * SECOND, ns=5 * SECOND)
    steps = StepsPart(count=100, trains=True, phase=phase)
    assert kinds(ReadsPart({LOOP: tally}), steps) == (["sync-in-loop"] if found else [])
    assert kinds(CopiesPart({LOOP: tally}), steps) == (["numpy-feed-in-loop"] if found else [])


@pytest.mark.parametrize(
    ("making_ms", "stages", "found"),
    [
        (1, ("Root", "Prefetch", "BatchV2"), []),
        (100, ("Root", "Prefetch", "BatchV2"), ["input-starved"]),
        (1, ("Root", "BatchV2"), ["missing-prefetch"]),
    ],
)
def test_a_pipeline_that_keeps_up_is_not_blamed_for_a_busy_machine(
    making_ms: int, stages: tuple[str, ...], found: list[str]
) -> None:
    pipeline = Pipeline([UserStage("Batch", STEP)], elements=100, wait_ns=SECOND, sites={LOOP: 3})
    pipeline.ran = [(name, 50, 50 * making_ms * 1_000_000 * (name == "BatchV2")) for name in stages]
    assert kinds(InputPart([pipeline]), StepsPart(count=100, phase=Phase(ns=9 * SECOND))) == found


def test_a_function_called_for_every_row_does_not_keep_up_though_tf_data_says_so() -> None:
    pipeline = Pipeline([UserStage("Batch", STEP)], elements=100, wait_ns=SECOND, sites={LOOP: 3})
    pipeline.ran = [("Root", 50, 0), ("Prefetch", 50, 0), ("BatchV2", 50, 0), ("Map", 50 * 4096, 5_000)]
    assert kinds(InputPart([pipeline]), StepsPart(count=100, phase=Phase(ns=9 * SECOND))) == ["input-starved"]


def test_what_a_repeat_reads_counts_in_every_round() -> None:
    pipeline = Pipeline([UserStage("Batch", STEP)], elements=100, wait_ns=SECOND, sites={LOOP: 3})
    # tf.data's books of the last of ten rounds, in which each of five batches took 30 of the 90 ms that a step takes.
    last_round = ("BatchV2", 5, 150_000_000)
    pipeline.ran = [("Root", 50, 0), ("Prefetch", 50, 0), ("ForeverRepeat", 50, 0), last_round]
    assert kinds(InputPart([pipeline]), StepsPart(count=100, phase=Phase(ns=9 * SECOND))) == ["input-starved"]


@pytest.mark.parametrize(
    ("teardowns", "ns", "found"),
    [(5, SECOND, True), (1, SECOND, False), (5, SECOND // 3, False)],
)
def test_iterators_that_hold_the_program_up_as_they_go(teardowns: int, ns: int, found: bool) -> None:
    pipeline = Pipeline([UserStage("Batch", STEP)], elements=50, sites={LOOP: 3})
    pipeline.teardowns, pipeline.teardown_ns = teardowns, ns
    drafts = findings(measurements(InputPart([pipeline])))
    assert [(f.kind, f.line, f.count, f.lost_s) for f in drafts] == (
        [("iterator-teardown", 10, 5, 0.8)] if found else []
    )


def test_on_a_busy_machine_an_iterators_thread_takes_long_to_end_for_others() -> None:
    pipeline = Pipeline([UserStage("Batch", STEP)], elements=50, sites={LOOP: 3})
    pipeline.teardowns, pipeline.teardown_ns = 5, SECOND
    assert kinds(InputPart([pipeline]), EnvironmentPart({OTHER_WORK: 0.1})) == ["iterator-teardown"]
    assert kinds(InputPart([pipeline]), EnvironmentPart({OTHER_WORK: 0.8})) == []


def traced(**changes: Any) -> TracedFunction:
    function = TracedFunction("step", STEP, objects=1, traces=10, retraces=9, ns=SECOND, sites={LOOP: 10})
    function.repeated_ns = SECOND // 2
    for name, value in changes.items():
        setattr(function, name, value)
    return function


@pytest.mark.parametrize(
    ("function", "kind", "line"),
    [
        (traced(changes=[ArgumentChange("n", "1", "2", True)]), "retrace-python-arg", 10),
        (traced(changes=[ArgumentChange("x", "float32[3]", "float32[4]", False)]), "retrace-shape", 10),
        (traced(objects=10, retraces=0), "tf-function-in-loop", 3),
        # Each new function is also traced for the last, smaller batch.
        (traced(objects=6, traces=12, retraces=6), "tf-function-in-loop", 3),
    ],
)
def test_repeated_tracing(function: TracedFunction, kind: str, line: int) -> None:
    (found,) = findings(measurements(TracesPart([function], frozenset({STEP}))))
    assert (found.kind, found.line, found.lost_s) == (kind, line, 0.5)


def test_tracing_of_library_functions_is_not_the_users_finding() -> None:
    assert kinds(TracesPart([traced(objects=10, retraces=0)])) == []


def step_of_keras(**changes: Any) -> TracedFunction:
    """Three folds, each fitted and evaluated."""
    lines = {LOOP: 3, ("train.py", 11, "main"): 3}
    steps = traced(objects=6, traces=6, retraces=0, sites=lines, updates_variables=True)
    for name, value in changes.items():
        setattr(steps, name, value)
    return steps


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (step_of_keras(), [("new-model-in-loop", 10, 3, round(2 / 3, 6))]),
        # One model, fitted and evaluated, with batches of many shapes.
        (step_of_keras(objects=3, retraces=3), []),
        (step_of_keras(sites={LOOP: 2, ("train.py", 11, "main"): 4}), []),
        # A pipeline that is made anew for each fold.
        (step_of_keras(updates_variables=False), []),
        (step_of_keras(ns=SECOND // 100), []),
    ],
)
def test_a_model_for_each_fold_is_traced_for_each(function: TracedFunction, found: list[Any]) -> None:
    keras = KerasPart(fits={LOOP: FitCalls(calls=3, ns=SECOND)})
    drafts = findings(measurements(TracesPart([function]), keras))
    assert [(f.kind, f.line, f.count, f.lost_s) for f in drafts] == found


def test_two_traces_are_usual() -> None:
    assert kinds(TracesPart([traced(traces=2, retraces=1)], frozenset({STEP}))) == []


WINDOWS = WindowsPart(WindowSummary(windows=1, window_ns=1000, graph_ns=500, graph_busy_ns=100, busy_ns=100))


def test_calls_that_cost_more_than_they_run() -> None:
    function = CalledFunction(
        "step", STEP, calls=1000, graph_ns=2 * SECOND, dispatch_ns=SECOND, sites={LOOP: 3}
    )
    (found,) = findings(measurements(CallsPart([function]), WINDOWS))
    assert (found.kind, found.line, found.lost_s) == ("launch-bound", 10, 2.6)


def test_a_busy_machine_and_a_first_call_make_no_call_too_small() -> None:
    """Kernels that wait for processors, and what the first call looks up, are not the price of calling."""
    function = CalledFunction(
        "step", STEP, calls=200, graph_ns=2 * SECOND, dispatch_ns=SECOND, sites={LOOP: 3}
    )
    waiting = WindowsPart(
        WindowSummary(windows=1, window_ns=1000, graph_ns=500, graph_busy_ns=250, busy_ns=250)
    )
    busy = EnvironmentPart({OTHER_WORK: 0.9})
    assert kinds(CallsPart([function]), waiting) == ["launch-bound"]
    function.first_dispatch_ns = 8 * SECOND // 10
    assert kinds(CallsPart([function]), waiting) == ["launch-bound"]
    assert kinds(CallsPart([function]), waiting, busy) == []
    function.dispatch_ns = 2 * SECOND
    assert kinds(CallsPart([function]), waiting, busy) == ["launch-bound"]


def test_an_asynchronous_call_is_judged_by_the_device() -> None:
    function = CalledFunction(
        "step", STEP, calls=1000, graph_ns=2 * SECOND, dispatch_ns=SECOND, sites={LOOP: 3}
    )
    busy = WindowsPart(WindowSummary(windows=1, window_ns=1000, graph_ns=500, busy_ns=900))
    assert kinds(CallsPart([function]), busy, DevicePart(is_async=True)) == []


def stage(name: str, line: int, **flags: bool) -> UserStage:
    return UserStage(name, ("data.py", line, "pipeline"), **flags)


@pytest.mark.parametrize(
    ("stages", "ran_as", "kind", "line"),
    [
        (
            [stage("Prefetch", 4), stage("from_generator", 2, python=True)],
            "Iterator::Root::Prefetch::FlatMap::Generator",
            "python-input-pipeline",
            2,
        ),
        (
            [stage("Prefetch", 4), stage("Map", 3, python=True), stage("Range", 2)],
            "Iterator::Root::Prefetch::Map",
            "python-input-pipeline",
            3,
        ),
        (
            [stage("Prefetch", 5), stage("Shuffle", 4), stage("Map", 3), stage("Range", 2)],
            "Iterator::Root::Prefetch::Shuffle::Map",
            "map-without-parallel-calls",
            3,
        ),
        ([stage("Batch", 5), stage("Range", 2)], "Iterator::Root::BatchV2", "missing-prefetch", 5),
        (
            [stage("Prefetch", 5), stage("ParallelMap", 3, parallel=True), stage("Range", 2)],
            "Iterator::Root::Prefetch::ParallelMapV2",
            "input-starved",
            3,
        ),
    ],
)
def test_the_pipeline_is_blamed_where_it_is_slow(
    stages: list[UserStage], ran_as: str, kind: str, line: int
) -> None:
    windows = WindowSummary(windows=1, window_ns=1000, stages={ran_as: StageTime(10, 10 * SECOND)})
    pipeline = Pipeline(stages, elements=100, wait_ns=SECOND)
    (found,) = findings(measurements(InputPart([pipeline]), WindowsPart(windows)))
    assert (found.kind, found.line, found.lost_s) == (kind, line, 1.0)


@pytest.mark.parametrize(
    ("stages", "slow", "says", "says_not"),
    [
        (("Prefetch", "Batch", "Shuffle", "TensorSlice"), "Shuffle", "gather whole batches", "cache"),
        (("Prefetch", "Batch", "Range"), "BatchV2", "gather", "cache"),
        (("Prefetch", "Batch", "ParallelMap", "Range"), "ParallelMapV2", "map whole batches", "already"),
        (("Prefetch", "ParallelMap", "Batch", "Range"), "ParallelMapV2", "cache()", "after batch()"),
        (
            ("Batch", "Cache", "ParallelMap"),
            "MemoryCache::ParallelMapV2",
            "only the first pass",
            "stoker.tune",
        ),
        (
            ("Batch", "ParallelMap", "Cache"),
            "ParallelMapV2::MemoryCache::TensorSlice",
            "once beforehand",
            "tune",
        ),
        (("Prefetch", "Batch", "TFRecord"), "TFRecord", "stoker.data", "cache"),
        (("Prefetch", "Batch", "Filter", "Range"), "Filter", "filter whole batches", "parallel"),
    ],
)
def test_the_remedy_can_be_done_where_the_slow_stage_stands(
    stages: tuple[str, ...], slow: str, says: str, says_not: str
) -> None:
    written = [stage(name, line, parallel=name == "ParallelMap") for line, name in enumerate(stages)]
    path = f"Iterator::Root::Prefetch::{slow}"
    windows = WindowSummary(windows=1, window_ns=1000, stages={path: StageTime(10, 10 * SECOND)})
    pipeline = Pipeline(written, elements=100, wait_ns=SECOND)
    (found,) = findings(measurements(InputPart([pipeline]), WindowsPart(windows)))
    assert found.kind == "input-starved"
    assert says in found.remedy
    assert says_not not in found.remedy


def test_batches_that_are_shuffled_are_found_unless_they_were_taken_apart() -> None:
    behind = [stage("Prefetch", 5), stage("Shuffle", 4), stage("Batch", 3), stage("TensorSlice", 2)]
    apart = [stage("Shuffle", 4), stage("Unbatch", 3), stage("Batch", 2), stage("TensorSlice", 1)]
    before = [stage("Batch", 4), stage("Shuffle", 3), stage("TensorSlice", 2)]
    found = [
        findings(measurements(InputPart([Pipeline(stages, elements=100)])))
        for stages in (behind, apart, before)
    ]
    assert [[(f.kind, f.line, f.lost_s) for f in one] for one in found] == [
        [("shuffle-after-batch", 4, 0.0)],
        [],
        [],
    ]


def test_a_pipeline_that_keeps_up_is_no_finding() -> None:
    assert kinds(InputPart([Pipeline([stage("Batch", 5)], elements=100, wait_ns=SECOND // 100)])) == []


def test_callbacks_and_predict() -> None:
    callback = CallbackTime(
        "Logger", "on_train_batch_end", ("train.py", 20, "on_train_batch_end"), True, 100, SECOND
    )
    predict = PredictCalls(calls=50, rows=50, ns=2 * SECOND, graph_ns=SECOND // 2)
    found = findings(measurements(KerasPart([callback], {LOOP: predict})))
    assert [(f.kind, f.line, f.lost_s) for f in found] == [
        ("predict-in-loop", 10, 1.5),
        ("host-callback-per-batch", 20, 1.0),
    ]


def test_large_batches_in_predict_are_fine() -> None:
    predict = PredictCalls(calls=50, rows=50 * 256, ns=2 * SECOND)
    assert kinds(KerasPart(predicts={LOOP: predict})) == []


def test_saving_in_the_loop() -> None:
    tally = Tally(count=50, ns=SECOND, detail={"what": "save"})
    assert kinds(CheckpointsPart({LOOP: tally})) == ["checkpoint-in-loop"]
