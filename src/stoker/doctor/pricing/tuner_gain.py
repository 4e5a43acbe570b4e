"""Estimate what the tuner would gain for a starved step: replay the run with its input as the tuner would change it.

This is a model. Only the tuner can find out whether the change keeps every bit, and only timing tells its real gain.
"""

from __future__ import annotations

import statistics

from stoker.doctor.pricing.claims import repair_of
from stoker.doctor.replay.program import Program, is_element
from stoker.doctor.replay.simulation import Draw, seconds_per_step
from stoker.doctor.stalls.shared.input_repair import AHEAD, InputRepair, with_source
from stoker.records import Finding, TunerGain


def of(program: Program, finding: Finding) -> TunerGain | None:
    """Return what the tuner would gain; None if it can try nothing, or the time of an element is unknown."""
    source = program.source
    repair = repair_of(finding.kind)
    if not isinstance(repair, InputRepair) or source is None or source.seconds <= 0:
        return None
    change = repair.tuner_change(program, source, finding)
    if change is None:
        return None
    elements = statistics.fmean(sum(is_element(p) for p in step) for step in program.steps) or 1.0
    # The median, to exclude what happens only once between steps.
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
    """Return the command that measures the gain; None if the line is in no function that can be named."""
    if not finding.function.isidentifier():
        return None
    return f"stoker tune {finding.file}:{finding.function}"
