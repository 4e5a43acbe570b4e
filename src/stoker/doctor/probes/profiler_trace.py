"""Reading a window of TensorFlow's profiler: what the graph, the eager ops and the input pipeline really did.

A window is a trace: threads with named intervals. This module knows the names and turns the intervals into a few sums;
it keeps nothing of the trace.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from stoker.doctor.attach.gently import gently
from stoker.doctor.probes.pipelines import StageTime
from stoker.records import WindowSums
from stoker.tf_internals.types import ProtoMessage

Interval = tuple[int, int]
# Start and end on the profiler's clock, in nanoseconds; name; long name.
_Event = tuple[int, int, str, str]
# By device and thread: the thread's name and its events in order of their start.
Threads = dict[tuple[str, int], tuple[str, list[_Event]]]

# `Repeat[77]` has the number of the input that a stage is reading. The stage is the same for all numbers.
_ELEMENT = re.compile(r"\[\d+\]")

# Frequent events that show nothing.
_IRRELEVANT = ("ThreadpoolListener", "TFE_DeleteTensorHandle", "EagerCopyToDevice", "ValidateInput")

# Of this many kernels that ran at the same place of a step, at least one had its processor to itself. Kernels of an op
# at places with fewer may take this many times as long, because of their shapes; a kernel that took longer had lost its
# processor.
_ENOUGH = 3
_OTHER_SHAPES = 4
# A kernel that takes this long divides its own work among all processors.
_WIDE_NS = 100_000


@dataclass
class WindowSummary(WindowSums):
    """The sums, and the stages of the pipelines."""

    stages: dict[str, StageTime] = field(default_factory=dict)

    def sums(self) -> WindowSums:
        """Return the sums alone, which a record keeps."""
        names = [item.name for item in fields(WindowSums) if item.name != "stages"]
        return WindowSums(**{name: getattr(self, name) for name in names})

    def add(self, other: WindowSummary) -> None:
        """Add the sums of another window."""
        for item in fields(WindowSums):
            mine = getattr(self, item.name)
            if isinstance(mine, int):
                setattr(self, item.name, mine + getattr(other, item.name))
        for path, stage in other.stages.items():
            total = self.stages.setdefault(path, StageTime())
            total.calls += stage.calls
            total.self_ns += stage.self_ns


def summarise(threads: Threads, window_ns: int) -> WindowSummary:
    """Return the sums of one window, from its events by thread."""
    graph: list[Interval] = []
    waits: list[Interval] = []
    exchanges: list[Interval] = []
    kernels: list[Interval] = []
    streams: list[Interval] = []
    summary = WindowSummary(windows=1, window_ns=window_ns)
    for (device, _), (thread_name, events) in threads.items():
        if device.startswith("/device:GPU"):
            streams += [(start, end) for start, end, _, _ in events]
            continue
        _add_stages(summary.stages, events)
        input_thread = thread_name.startswith("tf_data")
        for start, end, name, detail in gently(events):
            if name.startswith("TFE_Py_Execute"):
                graph.append((start, end))
            elif name == "IteratorGetNextOp::DoCompute":
                waits.append((start, end))
            elif name.startswith("Collective") and ":" in detail:
                exchanges.append((start, end))
            elif not input_thread and _is_kernel(name, detail):
                kernels.append((start, end))
        eager = _eager_kernels(summary, events)
        durations = [end - start for _, start, end in eager]
        summary.eager_kernels += len(eager)
        summary.eager_floor_ns += _find_quickest(durations) * len(eager)
        calm, wide = _sum_calm_durations([(name, end - start) for name, start, end in eager])
        summary.eager_calm_ns += calm
        summary.eager_wide_ns += wide
        kernels += [(start, end) for _, start, end in eager]
    graph, waits, kernels = merge(graph), merge(waits), merge(kernels)
    exchanging = intersect(graph, merge(exchanges))
    summary.graph_ns = length(graph)
    busy = intersect(graph, kernels)
    summary.graph_busy_ns = length(busy)
    summary.graph_calls = len(graph)
    summary.graph_quick_ns = _find_quickest(_measure_cover(graph, busy)) * len(graph)
    waiting = intersect(graph, waits)
    summary.graph_input_ns = length(waiting) - length(intersect(waiting, kernels))
    other = merge([*kernels, *waiting])
    summary.graph_communication_ns = length(exchanging) - length(intersect(exchanging, other))
    summary.busy_ns = length(merge(streams)) if streams else length(kernels)
    return summary


def group_by_thread(trace: ProtoMessage) -> Threads:
    """Return the events by device and thread, as (start, end, name, long name), in order of their start."""
    names = {
        (device_id, resource_id): (device.name, resource.name)
        for device_id, device in trace.devices.items()
        for resource_id, resource in device.resources.items()
    }
    threads: Threads = {}
    for event in gently(trace.trace_events):
        name = event.name
        if name.startswith(_IRRELEVANT):
            continue
        device, thread = names.get((event.device_id, event.resource_id), ("", ""))
        start = event.timestamp_ps // 1000
        args = event.args
        detail = args["long_name"] if "long_name" in args else ""  # noqa: SIM401 - a protobuf map's get is slow
        entry = (start, start + event.duration_ps // 1000, name, detail)
        threads.setdefault((device, event.resource_id), (thread, []))[1].append(entry)
    for _, events in threads.values():
        events.sort(key=lambda e: (e[0], -e[1]))
    return threads


def _is_kernel(name: str, detail: str) -> bool:
    """Return whether an event shows an executor's thread at work.

    Only costly kernels have events of their own, with `node:Op` as the long name; cheap ones run inside `Process`.
    """
    if name == "ExecutorState::Process":
        return True
    return (
        ":" in detail
        and not detail.startswith("Iterator::")
        and not name.startswith(("Iterator", "Optional"))
    )


def _eager_kernels(summary: WindowSummary, events: list[_Event]) -> list[tuple[str, int, int]]:
    """Add up the eager ops of one thread. Return their names, with the intervals in which their kernels ran."""
    kernels: list[tuple[str, int, int]] = []
    op_end, op_start, run, waits, op = 0, 0, 0, False, ""

    def close() -> None:
        nonlocal op_end
        if op_end and not waits:
            summary.eager_ns += op_end - op_start
            summary.eager_kernel_ns += run
        op_end = 0

    for start, end, name, _ in events:
        if op_end and start >= op_end:
            close()
        if name == "TFE_Py_FastPathExecute_C" and not op_end:
            op_start, op_end, run, waits, op = start, end, 0, False, ""
        elif op_end and name.startswith("EagerLocalExecute: "):
            op = name
        elif op_end and name.startswith("KernelAndDevice"):
            run += end - start
            kernels.append((op, start, end))
        elif op_end and name.startswith("IteratorGetNext"):
            waits = True
            if kernels:
                kernels.pop()
    close()
    return kernels


def _find_quickest(durations: list[int]) -> int:
    """Return the tenth percentile: the duration if nothing slows the work down."""
    return sorted(durations)[len(durations) // 10] if durations else 0


def _sum_calm_durations(kernels: list[tuple[str, int]]) -> tuple[int, int]:
    """Return the sum of the kernels' durations on a calm machine, and the part of it in long kernels.

    Each kernel counts as long as the quicker quarter of those that ran between the same two neighbours. A step runs the
    same ops in the same order each time, so neighbours tell apart kernels of one op with different shapes.
    """
    names = ["", *(name for name, _ in kernels), ""]
    alike: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, (name, duration) in enumerate(kernels):
        # Creating a pipeline is not part of a step. It starts functions and threads, and takes as long as a thousand
        # kernels.
        if "Dataset" not in name and "Iterator" not in name:
            alike[names[place], name, names[place + 2]].append(duration)
    by_op: defaultdict[str, list[int]] = defaultdict(list)
    most: defaultdict[str, int] = defaultdict(int)
    for (_, name, _), group in alike.items():
        by_op[name] += group
        if len(group) >= _ENOUGH:
            most[name] = max(most[name], _find_lower_quartile(group))
    total = wide = 0
    for (_, name, _), group in alike.items():
        each = _find_lower_quartile(group)
        if len(group) < _ENOUGH:
            each = min(each, max(most[name], _OTHER_SHAPES * _find_lower_quartile(by_op[name])))
        total += each * len(group)
        wide += each * len(group) if each >= _WIDE_NS else 0
    return total, wide


def _find_lower_quartile(durations: list[int]) -> int:
    return sorted(durations)[len(durations) // 4]


def _measure_cover(outer: list[Interval], inner: list[Interval]) -> list[int]:
    """Return how much of each outer interval the inner ones cover. Both lists are disjoint and in order."""
    covered, j = [], 0
    for start, end in outer:
        total = 0
        while j < len(inner) and inner[j][1] <= end:
            total += inner[j][1] - max(start, inner[j][0])
            j += 1
        covered.append(total)
    return covered


def _add_stages(stages: dict[str, StageTime], events: list[_Event]) -> None:
    """Add the self time of each pipeline stage on one thread: its intervals without the stages that it called there."""
    open_stages: list[tuple[int, str]] = []
    for start, end, name, detail in gently(events):
        if not name.startswith("Iterator::"):
            continue
        path = _ELEMENT.sub("", detail or name)
        while open_stages and start >= open_stages[-1][0]:
            open_stages.pop()
        stage = stages.setdefault(path, StageTime())
        stage.calls += 1
        stage.self_ns += end - start
        if open_stages:
            stages[open_stages[-1][1]].self_ns -= end - start
        open_stages.append((end, path))


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union, as disjoint intervals in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def intersect(a: list[Interval], b: list[Interval]) -> list[Interval]:
    """Return the common part of two lists of disjoint intervals in order."""
    common: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            common.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return common


def length(intervals: list[Interval]) -> int:
    """Return the total length of disjoint intervals."""
    return sum(end - start for start, end in intervals)
