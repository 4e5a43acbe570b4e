"""What the tuner would gain for a starved step: the run replayed with its input as a change of the tuner would make it.

A model: whether the change keeps every bit, only the tuner can find out, and how much it brings, only timing it tells.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from stoker.doctor.pricing.claims import INPUTS
from stoker.doctor.pricing.feeding import is_element
from stoker.doctor.pricing.input_repairs import AHEAD, LEFT_OF_INPUT, LEFT_OF_PYTHON, with_source
from stoker.doctor.pricing.program import Program
from stoker.doctor.pricing.simulation import Draw, seconds_per_step
from stoker.records import Finding, TunerGain

_MAPS = ("Map", "ParallelMap", "MapAndBatch")
_ROW_BY_ROW = ("Shuffle", "ShuffleAndRepeat", "Batch", "ParallelBatch", "TensorSlice")
_FILES = ("TFRecord", "TextLine", "FixedLengthRecord", "Interleave", "ParallelInterleave")
# A stage that is called more often than this for an element works row by row.
_ROWS = 1.5


@dataclass(frozen=True)
class _Change:
    """A change of the tuner, and what it leaves of the slow stage's work: at best, at worst."""

    name: str
    best: float
    worst: float
    assumes: str


_PREFETCH = _Change("prefetch", 1.0, 1.0, "the next element is made while the step runs")


def of(program: Program, finding: Finding) -> TunerGain | None:
    """What the tuner would gain; None where it has nothing to try, or the run does not tell what an element takes."""
    source = program.source
    if finding.kind not in INPUTS or source is None or source.seconds <= 0:
        return None
    change = _change(program, finding)
    if change is None:
        return None
    elements = statistics.fmean(sum(is_element(p) for p in step) for step in program.steps) or 1.0
    # The median: what happens once between steps is no part of what a step takes.
    rest = statistics.median(sum(p.seconds for p in step if p.account != "input") for step in program.steps)
    now = seconds_per_step(program, Draw())

    def left(share: float) -> float:
        return source.seconds * (1 - source.slow_share + source.slow_share * share)

    def speedup(share: float) -> float:
        tuned = with_source(program, left(share), ahead=AHEAD)
        return max(1.0, now / seconds_per_step(tuned, Draw()))

    return TunerGain(
        change=change.name,
        assumes=change.assumes,
        step_per_s=elements / rest if rest > 0 else None,
        gives_per_s=1 / source.seconds,
        could_give_per_s=[1 / left(change.worst), 1 / left(change.best)],
        speedup=[round(speedup(change.worst), 3), round(speedup(change.best), 3)],
        command=_command(finding),
    )


def _change(program: Program, finding: Finding) -> _Change | None:
    source = program.source
    assert source is not None
    slow, stages = finding.detail.get("slow_stage") or "", finding.detail.get("pipeline", [])
    cores = 1 / program.cores
    if finding.kind == "python-input-pipeline":
        if "from_generator" not in stages:
            # Python code inside a map may do anything: the tuner leaves it alone.
            return None
        best, worst = LEFT_OF_PYTHON
        return _Change(
            "generator drained in chunks", best, worst, "a hundredth to a tenth of the Python stage is left"
        )
    if finding.kind == "missing-prefetch":
        return _PREFETCH
    by_row = source.slow_calls > _ROWS
    if slow in _MAPS and by_row:
        return _Change(
            "map moved behind batch",
            1 / source.slow_calls,
            max(cores, 1 / source.slow_calls),
            "its function does the same to a batch; at best all it takes is being called",
        )
    if slow == "Map":
        return _Change("parallel calls", cores, cores, "its function depends on its arguments alone")
    if slow in _ROW_BY_ROW and by_row:
        return _Change("batches gathered by row number", 1 / source.slow_calls, 1.0, "the rows are in memory")
    if slow in (*_MAPS, *_FILES):
        return _Change("cache", LEFT_OF_INPUT, 1.0, "it is the same in every epoch, and fits into memory")
    return None if source.ahead else _PREFETCH


def _command(finding: Finding) -> str | None:
    """What measures it; None where the line is in no function that could be named."""
    if not finding.function.isidentifier():
        return None
    return f"stoker tune {finding.file}:{finding.function}"
