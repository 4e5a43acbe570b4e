"""Reading the profiler's windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from stoker.doctor.probes.pipelines import StageTime, find_slow_stage, stage_name
from stoker.doctor.probes.profiler_trace import (
    Interval,
    Threads,
    WindowSummary,
    group_by_thread,
    intersect,
    length,
    merge,
    summarise,
)


@dataclass
class Event:
    """An event of the trace, in microseconds."""

    resource_id: int
    name: str
    start: int
    end: int
    long_name: str = ""
    device_id: int = 1
    args: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.timestamp_ps = self.start * 1_000_000
        self.duration_ps = (self.end - self.start) * 1_000_000
        if self.long_name:
            self.args["long_name"] = self.long_name


def trace(*events: Event, threads: dict[int, str], device: str = "/host:CPU") -> Threads:
    """A window's events as the profiler gives them, by thread."""
    resources = {number: SimpleNamespace(name=name) for number, name in threads.items()}
    devices = {1: SimpleNamespace(name=device, resources=resources)}
    return group_by_thread(SimpleNamespace(devices=devices, trace_events=events))


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], []),
        ([(5, 9), (1, 3)], [(1, 3), (5, 9)]),
        ([(1, 4), (2, 3), (4, 6)], [(1, 6)]),
    ],
)
def test_merge(intervals: list[Interval], expected: list[Interval]) -> None:
    assert merge(intervals) == expected


def test_intersect_and_length() -> None:
    assert intersect([(0, 10), (20, 30)], [(5, 25)]) == [(5, 10), (20, 25)]
    assert length([(5, 10), (20, 25)]) == 10


def test_a_graph_that_waits_for_its_batch() -> None:
    summary = summarise(
        trace(
            Event(1, "TFE_Py_ExecuteCancelable", 0, 100),
            Event(2, "IteratorGetNextOp::DoCompute", 10, 70),
            Event(3, "MatMul", 60, 95, "model/MatMul:MatMul"),
            threads={1: "python", 2: "tf_data_iterator_get_next/1", 3: "tf_Compute/1"},
        ),
        200_000,
    )
    assert summary.graph_ns == 100_000
    # From 60 on a kernel ran: only 10 to 60 was waiting.
    assert summary.graph_input_ns == 50_000
    assert summary.graph_busy_ns == 35_000
    assert summary.busy_ns == 35_000


def test_kernels_of_the_input_pipeline_are_not_the_devices_work() -> None:
    summary = summarise(
        trace(Event(1, "Mul", 0, 50, "mul:Mul"), threads={1: "tf_data_private_threadpool/7"}), 100_000
    )
    assert summary.busy_ns == 0


def test_eager_ops_and_the_next_element_are_told_apart() -> None:
    summary = summarise(
        trace(
            Event(1, "TFE_Py_FastPathExecute_C", 0, 20),
            Event(1, "KernelAndDeviceFunc::Run", 5, 15),
            Event(1, "TFE_Py_FastPathExecute_C", 30, 90),
            Event(1, "KernelAndDeviceFunc::Run", 35, 85),
            Event(1, "IteratorGetNextOp::DoCompute", 36, 84),
            threads={1: "python"},
        ),
        100_000,
    )
    assert (summary.eager_ns, summary.eager_kernel_ns, summary.busy_ns) == (20_000, 10_000, 10_000)


def test_a_gpu_is_busy_when_its_streams_are() -> None:
    events = (Event(1, "sgemm", 0, 40), Event(2, "MemcpyD2H", 30, 50))
    summary = summarise(trace(*events, threads={1: "stream", 2: "copy"}, device="/device:GPU:0"), 100_000)
    assert summary.busy_ns == 50_000


def test_the_slow_stage_is_the_one_with_most_time_of_its_own() -> None:
    root = "Iterator::Root::Prefetch"
    summary = summarise(
        trace(
            Event(1, "Iterator::Prefetch", 0, 100, root),
            Event(2, "Iterator::BatchV2", 0, 100, f"{root}::BatchV2"),
            Event(2, "Iterator::Map", 5, 95, f"{root}::BatchV2::Map"),
            Event(2, "Iterator::Range", 10, 20, f"{root}::BatchV2::Map::Range"),
            threads={1: "python", 2: "tf_data_iterator_resource/3"},
        ),
        100_000,
    )
    assert find_slow_stage(summary.stages) == f"{root}::BatchV2::Map"
    assert summary.stages[f"{root}::BatchV2::Map"].self_ns == 80_000


def test_stage_paths_do_not_grow_with_the_elements() -> None:
    events = [
        Event(1, "Iterator::FromTensor", n * 10, n * 10 + 5, f"Iterator::Root::Repeat[{n}]::FromTensor")
        for n in range(50)
    ]
    summary = summarise(trace(*events, threads={1: "tf_data_iterator_resource/3"}), 1_000_000)
    assert list(summary.stages) == ["Iterator::Root::Repeat::FromTensor"]
    assert summary.stages["Iterator::Root::Repeat::FromTensor"].calls == 50


def test_stage_name() -> None:
    assert stage_name("Iterator::Root::Prefetch::ParallelMapV2") == "ParallelMap"


def test_summaries_add_up() -> None:
    total = WindowSummary()
    total.add(WindowSummary(windows=1, window_ns=10, busy_ns=4, stages={"a": StageTime(2, 6)}))
    total.add(WindowSummary(windows=1, window_ns=10, busy_ns=2, stages={"a": StageTime(1, 1)}))
    assert (total.windows, total.window_ns, total.busy_ns) == (2, 20, 6)
    assert total.stages["a"] == StageTime(3, 7)


def test_kernels_that_lost_their_processor_are_counted_as_their_like() -> None:
    """Ten rounds of two ops; one kernel lost its processor for 5 ms."""
    events = []
    for number in range(20):
        start, op = number * 10_000, ("MatMul", "Relu")[number % 2]
        end = start + (5000 if number == 8 else 30)
        events.append(Event(1, "TFE_Py_FastPathExecute_C", start, end + 10))
        events.append(Event(1, f"EagerLocalExecute: {op}", start + 1, end + 5))
        events.append(Event(1, "KernelAndDeviceOp::Run", start + 2, end))
    summary = summarise(trace(*events, threads={1: "main"}), 1)
    assert summary.eager_kernel_ns == (19 * 28 + 4998) * 1000
    assert summary.eager_calm_ns == 20 * 28 * 1000


def test_one_op_may_have_kernels_of_very_different_shapes() -> None:
    """Four steps of two products: one takes a hundred times as long as the other, each time."""
    events, start = [], 0
    for op, took in [("Relu", 5), ("MatMul", 20), ("Add", 5), ("MatMul", 2000)] * 4:
        events.append(Event(1, "TFE_Py_FastPathExecute_C", start, start + took + 20))
        events.append(Event(1, f"EagerLocalExecute: {op}", start + 1, start + took + 15))
        events.append(Event(1, "KernelAndDeviceOp::Run", start + 2, start + 2 + took))
        start += took + 30
    summary = summarise(trace(*events, threads={1: "main"}), 1)
    assert summary.eager_calm_ns == summary.eager_kernel_ns == 4 * 2030 * 1000
    assert summary.eager_wide_ns == 4 * 2000 * 1000


def test_a_graph_that_waits_for_other_workers() -> None:
    summary = summarise(
        trace(
            Event(1, "TFE_Py_ExecuteCancelable", 0, 100),
            Event(2, "ExecutorState::Process", 0, 30),
            # Ten of its microseconds pass beside a kernel.
            Event(3, "CollectiveReduceV2", 20, 80, "CollectiveReduceV2:CollectiveReduceV2"),
            Event(2, "MatMul", 80, 95, "matmul:MatMul"),
            threads={1: "python", 2: "tf_Compute", 3: "collective_ops"},
        ),
        window_ns=100_000,
    )
    assert summary.graph_ns == 100_000
    assert summary.graph_communication_ns == 50_000
    assert summary.graph_busy_ns == 45_000
