"""The input pipeline as the replay needs it: how long an element takes to make, by whom, and when."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace

from stoker.doctor.probes.pipelines import BUFFERS, FIRST_ELEMENT, is_generator, slowest, stage_name
from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.program import AROUND, Source, is_element
from stoker.records import Record

# An input that keeps the step waiting for more than this share of its time is the slower of the two.
_STARVED = 0.05
# If the wait exceeds this share, the step waits for nothing else: an element takes as long as a step.
_HELD_UP = 0.3
# Getting an element that is ready takes up to this long.
_ASKING_S = 0.0004
# Stages, by the names under which they run, that make elements ahead.
_AHEAD = ("::Prefetch", "::Parallel", "::MapAndBatch")


def with_elements(steps: list[list[Piece]]) -> list[list[Piece]]:
    """Name input pieces that make and delete iterators: they have no line, while waits for elements have one."""
    if not any(p.account == "input" and p.site for step in steps for p in step):
        return steps

    def change(piece: Piece) -> Piece:
        around = piece.account == "input" and piece.site is None
        return replace(piece, name=AROUND) if around else piece

    return [[change(piece) for piece in step] for step in steps]


def source_of(record: Record, steps: list[list[Piece]], step_s: float, undisturbed: float) -> Source | None:
    """Return the pipeline that the steps wait for, as the run and the profiler's windows show it.

    The windows show the stages at work beside other programs; `undisturbed` is the share of that time without them.
    """
    asked = [[p for p in step if is_element(p)] for step in steps]
    first = sum(p.name == FIRST_ELEMENT for step in steps for p in step if p.account == "input")
    waits = [sum(p.seconds for p in pieces) for pieces in asked]
    elements = statistics.fmean(len(pieces) for pieces in asked)
    rows = record.tables.stages
    if sum(wait > 0 for wait in waits) * 2 < len(waits) or first * 2 > sum(len(p) for p in asked):
        # Iterators are made and deleted again, as `predict` does. This is not a pipeline at work.
        return None
    mean = statistics.fmean(waits)
    work = {row.path: row.self_s for row in rows if stage_name(row.path) not in BUFFERS}
    ahead = _made_ahead(record, work)
    slow = slowest(work) or ""
    total = sum(work.values())
    calls = {row.path: row.calls for row in rows}
    roots = _elements(slow, calls)
    parallel = any("Parallel" in path or "MapAndBatch" in path for path in work)
    window_s = record.tables.sums.window_ns / 1e9
    # The median, since the beginning of an epoch is long and rare.
    waited = statistics.median(waits)
    starved = waited > max(_STARVED * step_s, _ASKING_S * max(1.0, elements))
    if not ahead:
        made = mean
    elif starved and (not total or waited > _HELD_UP * step_s):
        made = step_s
    else:
        made = min(step_s, total / roots * undisturbed)
    made /= max(1.0, elements)
    return Source(
        seconds=made,
        ahead=8 if ahead else 0,
        threads=float(record.tables.stepping[0].cores) if parallel else 1.0,
        python=any(is_generator(path) for path in work) or _runs_python(record),
        duty=0.0 if not ahead else 1.0 if starved else min(1.0, total / window_s if window_s else 0.0),
        # A generator passes on single rows. If whole batches are made at once, the stages after it disappear with it.
        slow_share=work[slow] / total if total and not is_generator(slow) else 1.0,
        slow_calls=max(1.0, calls.get(slow, 1) / roots),
    )


def _made_ahead(record: Record, work: Mapping[str, float]) -> bool:
    """Return whether elements are made ahead, according to the pipeline as it ran, or else as the program built it."""
    if record.tables.stages:
        return any(name in path for path in work for name in _AHEAD)
    built = [row for row in record.tables.pipelines if row.elements]
    busiest = max(built, key=lambda row: row.elements, default=None)
    return busiest is not None and any(
        stage.name == "Prefetch" or stage.name.startswith("Parallel") for stage in busiest.stages
    )


def _elements(slow: str, calls: dict[str, int]) -> int:
    """Return how many elements were made during the windows, at least 1: perhaps no batch was finished."""
    stages = slow.split("::")
    for number, stage in enumerate(stages):
        if "Batch" in stage:
            return max(1, calls.get("::".join(stages[: number + 1]), 1))
    return max(1, min(calls.values(), default=1))


def _runs_python(record: Record) -> bool:
    return any(stage.python for row in record.tables.pipelines for stage in row.stages)
