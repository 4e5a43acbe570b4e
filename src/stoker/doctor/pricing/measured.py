"""A price without assumptions: a step, minus what repairs replace, plus what was timed in its place.

On a synchronous device, everything in a step happens one after the other, so nothing needs to be replayed. Only where
an input that is made ahead would hold up the repaired step is the price modelled. Three things are uncertain: how a
step of another run compares (processes differ), the time of the repaired part among the rest of a step, and which
part of a step is replaced. These errors are independent, so their squares add up.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.doctor.pricing.claims import held_s, repair_of
from stoker.doctor.replay.program import Program, TimedRepair, is_element
from stoker.doctor.replay.repair import RARELY
from stoker.doctor.replay.simulation import Draw, wait_for_lock
from stoker.records import Finding

# Standard errors of the time of the same program, and of a part of it, in another process.
_STEP_ERROR, _PART_ERROR = 0.035, 0.05
# The error of the rest of a step: without the stall it may be quicker, since caches and threads are warmer.
_REST_ERROR = 0.04
# Nine of ten values are within this many standard errors.
_NINE_OF_TEN = 1.645
# No repair gains this much.
_BEYOND_ALL = 1e4


@dataclass(frozen=True)
class MeasuredGain:
    """The gain from repairs, with bounds that hold for nine runs in ten."""

    speedup: float
    low: float
    high: float
    # The share of a step that the repairs replace.
    share: float


@dataclass(frozen=True)
class _Part:
    """The seconds of a step that are replaced, the seconds in their place, and the standard errors of both."""

    own_s: float
    own_error_s: float
    repaired_s: float = 0.0
    repaired_error_s: float = 0.0


def measured_gain(program: Program, findings: Sequence[Finding]) -> MeasuredGain | None:
    """Return what these repairs gain; None if any of it would have to be assumed."""
    gained = _timed_gain(program, findings)
    return None if gained is None or _outruns_input(program, gained) else gained


def outrun_input(program: Program, findings: Sequence[Finding]) -> bool:
    """Return whether a step with these repairs would wait for an input made ahead; only a model says how long."""
    gained = _timed_gain(program, findings)
    return gained is not None and _outruns_input(program, gained)


def _outruns_input(program: Program, gained: MeasuredGain) -> bool:
    return program.step_s / gained.speedup < _element_s(program)


def _timed_gain(program: Program, findings: Sequence[Finding]) -> MeasuredGain | None:
    if program.asynchronous or program.step_s <= 0 or not findings:
        return None
    parts = [_part(program, finding) for finding in _drop_nested(program, findings)]
    known = [part for part in parts if part is not None]
    return _gain(program.step_s, known) if len(known) == len(parts) else None


def _element_s(program: Program) -> float:
    """Return the time it takes to make the elements of a step by themselves; 0 if they are not made ahead.

    Waiting for Python's lock is left out: the host held it, and the repaired step may leave it free.
    """
    source = program.source
    if source is None or not source.ahead or not program.steps:
        return 0.0
    elements = statistics.fmean(sum(map(is_element, step)) for step in program.steps)
    waiting = wait_for_lock(program, Draw()) if source.python else 1.0
    return elements * source.seconds / waiting


def _drop_nested(program: Program, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, except those whose ops another of them also replaces."""
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
    # What is not replaced stays, so an error in one part is also an error in the other.
    errors += [min(part.own_error_s, max(rest, part.repaired_s)) for part in parts]
    share = own / step_s
    # If almost nothing changes, both runs are the same program.
    error = math.hypot(_STEP_ERROR * min(1.0, share * 2), math.hypot(*errors) / after)
    factor = math.exp(_NINE_OF_TEN * error)
    speedup = max(1.0, step_s / after)
    return MeasuredGain(speedup, max(1.0, speedup / factor), speedup * factor, share)


def _spread(values: Sequence[float]) -> float:
    """Return the distance between the lower and the upper quartile."""
    if len(values) < 2:
        return 0.0
    lower, _, upper = statistics.quantiles(values, n=4)
    return upper - lower


def _error_of_median(values: Sequence[float]) -> float:
    """Return the standard error of the median of normally distributed values."""
    return 1.25 * _spread(values) / 1.35 / math.sqrt(max(1, len(values)))
