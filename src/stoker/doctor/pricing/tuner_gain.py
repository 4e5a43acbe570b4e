"""What the tuner would gain for a starved step: the run replayed with its input as a change of the tuner would make it.

A model: whether the change keeps every bit, only the tuner can find out, and how much it brings, only timing it tells.
"""

from __future__ import annotations

import statistics

from stoker.doctor.pricing.claims import repair_of
from stoker.doctor.replay.program import Program, is_element
from stoker.doctor.replay.simulation import Draw, seconds_per_step
from stoker.doctor.stalls.shared.input_repair import AHEAD, InputRepair, with_source
from stoker.records import Finding, TunerGain


def of(program: Program, finding: Finding) -> TunerGain | None:
    """What the tuner would gain; None where it has nothing to try, or the run does not tell what an element takes."""
    source = program.source
    repair = repair_of(finding.kind)
    if not isinstance(repair, InputRepair) or source is None or source.seconds <= 0:
        return None
    change = repair.tuner_change(program, source, finding)
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


def _command(finding: Finding) -> str | None:
    """What measures it; None where the line is in no function that could be named."""
    if not finding.function.isidentifier():
        return None
    return f"stoker tune {finding.file}:{finding.function}"
