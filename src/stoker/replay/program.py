"""A measured run as something that can be replayed: its steps as pieces of work, and what feeds them.

Built from a saved record alone.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from stoker.records import Record, SteppingRow
from stoker.replay.feeding import Source, source_of
from stoker.replay.pieces import (
    Piece,
    evenly,
    from_spans,
    from_sums,
    inside_graphs,
    python_s,
    stretched,
    with_device,
    with_usual_first_calls,
)
from stoker.software_gpu.profiles import PROFILES, of_device

# A call of a compiled function binds, looks up and executes in about as much Python as this many eager ops.
_OPS_PER_CALL = 6


@dataclass(frozen=True)
class Program:
    """Everything the simulation knows."""

    steps: list[list[Piece]]
    step_s: float
    asynchronous: bool
    cores: int
    kernel_threads: int
    # The input as it is, and as it was while the pieces were measured beside it.
    source: Source | None = None
    measured: Source | None = None
    # Of the time inside eager ops and between them: running kernels, and the part of it any kernel takes.
    eager_kernels: float = 0.0
    eager_floor: float = 0.0
    # The host's Python in a step, as it was while the input was measured beside it.
    python_s: float = 0.0
    # Of the time kernels took in a compiled call: what the quickest calls took.
    quick: float = 1.0
    # The Python of one call of a compiled function.
    call_s: float = 0.0
    # What a step's eager ops take to launch on an accelerator, one by one, from inside a graph.
    launches_s: float = 0.0
    # Of a step's mean time in compiled calls: what the quickest quarter of the steps take at most. What comes between
    # the calls cools caches and lets threads fall asleep; without it they are between this and the mean.
    calm: float = 1.0


def of(record: Record) -> Program | None:
    """The program behind a record; None if it holds nothing to replay."""
    phase = record.tables.stepping_phase
    if phase is None or phase.steps < 2:
        return None
    measured = from_spans(record.timeline) if record.timeline else []
    if len(measured) < 2:
        # A step of more spans than a window holds: the sums tell less, but they do tell.
        measured = from_sums(record, phase)
    windows = record.tables.sums
    steps = evenly(measured)
    steps = stretched(steps, phase)
    step_s = phase.seconds / phase.steps
    asynchronous = phase.asynchronous
    graph_s = max(1, windows.graph_ns)
    steps = with_usual_first_calls(steps, windows.graph_busy_ns / graph_s)
    if asynchronous:
        steps = [with_device(step, (record.device.busy or 0.0) * step_s) for step in steps]
    else:
        steps = [inside_graphs(step, windows) for step in steps]
    busy = windows.graph_busy_ns
    eager_s = max(1, windows.eager_ns)
    source = source_of(record, steps, step_s)
    inside = phase.eager_op_s / phase.eager_s if phase.eager_s else 0.0
    eager_kernels = windows.eager_kernel_ns / eager_s * inside
    return Program(
        steps=steps,
        step_s=step_s,
        asynchronous=asynchronous,
        cores=phase.cores,
        kernel_threads=min(phase.kernel_threads, phase.cores),
        source=source,
        measured=source,
        eager_kernels=eager_kernels,
        python_s=python_s(steps, eager_kernels),
        eager_floor=windows.eager_floor_ns / eager_s * inside,
        quick=min(1.0, windows.graph_quick_ns / busy) if busy else 1.0,
        call_s=_call_s(steps, phase),
        launches_s=_launches_s(record, phase) if asynchronous else 0.0,
        calm=_calm(steps),
    )


def _call_s(steps: list[list[Piece]], phase: SteppingRow) -> float:
    """The Python of one compiled call: as this run's calls took, else as so many eager ops."""
    calls = sum(piece.account in ("compute", "graph") for step in steps for piece in step)
    around = sum(p.seconds for s in steps for p in s if p.account == "dispatch" and p.site)
    if calls:
        return around / calls
    outside = phase.eager_s - phase.eager_op_s
    return _OPS_PER_CALL * outside / phase.eager_ops if phase.eager_ops else 0.0


def _calm(steps: list[list[Piece]]) -> float:
    if all(any(p.account == "trace" for p in step) for step in steps):
        # No call was a usual one: how far they are apart says nothing.
        return 1.0
    calls = sorted(sum(p.seconds for p in step if p.account in ("compute", "graph")) for step in steps)
    mean = statistics.fmean(calls)
    return calls[len(calls) // 4] / mean if mean > 0 else 1.0


def _launches_s(record: Record, phase: SteppingRow) -> float:
    """Launching a step's kernels, as the modelled device's profile says; as any profile says of another's."""
    profile = of_device(record.device.name) or PROFILES["a100"]
    return float(phase.eager_ops / phase.steps * profile.launch_us * 1e-6)
