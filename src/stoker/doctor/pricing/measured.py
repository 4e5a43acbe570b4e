"""A price of which nothing is assumed: a step, less what repairs replace, plus what was timed in its place.

On a device that does not work beside the host a step is one thing after the other, so nothing needs to be replayed.
What is not known exactly: how a step of another run of the same program compares (processes differ), the time of the
repaired part among the rest of a step, and what of a step is replaced. These errors do not depend on each other, so
their squares add up.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.doctor.pricing.claims import held_s, repair_of
from stoker.doctor.replay.program import Program, TimedRepair
from stoker.doctor.replay.repair import RARELY
from stoker.records import Finding

# The same program takes so much more or less in another process, and so does a part of it: standard errors.
_STEP_ERROR, _PART_ERROR = 0.035, 0.05
# What stays of a step: without the stall it may be quicker, since caches and threads are warmer.
_REST_ERROR = 0.04
# So many standard errors hold nine of ten.
_NINE_OF_TEN = 1.645
# No repair gains so much.
_BEYOND_ALL = 1e4


@dataclass(frozen=True)
class MeasuredGain:
    """What repairs gain, with bounds that hold nine of ten."""

    speedup: float
    low: float
    high: float
    # Of a step, what they replace.
    share: float


@dataclass(frozen=True)
class _Part:
    """Of a step, seconds that are replaced, what comes in their place, and the standard errors of both."""

    own_s: float
    own_error_s: float
    repaired_s: float = 0.0
    repaired_error_s: float = 0.0


def measured_gain(program: Program, findings: Sequence[Finding]) -> MeasuredGain | None:
    """What these repairs gain; None where something of it would have to be assumed."""
    if program.asynchronous or program.step_s <= 0 or not findings:
        return None
    parts = [_part(program, finding) for finding in _drop_nested(program, findings)]
    known = [part for part in parts if part is not None]
    return _gain(program.step_s, known) if len(known) == len(parts) else None


def _drop_nested(program: Program, findings: Sequence[Finding]) -> list[Finding]:
    """The findings without those whose ops another one of them replaces as well."""
    chosen = {f"{f.kind}:{f.line}" for f in findings}

    def is_inside(finding: Finding) -> bool:
        timed = repair_of(finding.kind).timed(program, finding)
        return timed is not None and not chosen.isdisjoint(timed.within)

    return [finding for finding in findings if not is_inside(finding)]


def _part(program: Program, finding: Finding) -> _Part | None:
    repair = repair_of(finding.kind)
    timed = repair.timed(program, finding)
    if timed is not None and timed.replaces and repair.is_measured(program, finding):
        return _time_part(timed)
    if repair.only_leaves_out and repair.is_measured(program, finding):
        own = min(held_s(program, [finding]), program.step_s)
        return _Part(own, own * _PART_ERROR, own / RARELY)
    return None


def _time_part(timed: TimedRepair) -> _Part:
    repaired = statistics.median(timed.rounds)
    return _Part(
        timed.replaced_s,
        math.hypot(_error_of_median(timed.replaces), timed.unknown / 4),
        repaired,
        math.hypot(_spread(timed.rounds) / 2, repaired * _PART_ERROR),
    )


def _gain(step_s: float, parts: Sequence[_Part]) -> MeasuredGain:
    own = min(sum(part.own_s for part in parts), step_s)
    rest = step_s - own
    after = max(rest + sum(part.repaired_s for part in parts), step_s / _BEYOND_ALL)
    errors = [rest * _REST_ERROR, *(part.repaired_error_s for part in parts)]
    # What is not replaced stays, so an error of the one is an error of the other.
    errors += [min(part.own_error_s, max(rest, part.repaired_s)) for part in parts]
    share = own / step_s
    # Where next to nothing changes, both runs are the same program.
    error = math.hypot(_STEP_ERROR * min(1.0, share * 2), math.hypot(*errors) / after)
    factor = math.exp(_NINE_OF_TEN * error)
    speedup = max(1.0, step_s / after)
    return MeasuredGain(speedup, max(1.0, speedup / factor), speedup * factor, share)


def _spread(values: Sequence[float]) -> float:
    """From the lower quartile to the upper one."""
    if len(values) < 2:
        return 0.0
    lower, _, upper = statistics.quantiles(values, n=4)
    return upper - lower


def _error_of_median(values: Sequence[float]) -> float:
    """The standard error of the median of values that are distributed normally."""
    return 1.25 * _spread(values) / 1.35 / math.sqrt(max(1, len(values)))
