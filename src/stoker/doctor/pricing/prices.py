"""Price each finding and all together by replaying the run, and order the repairs.

A speed-up is one of steps a second in the stepping phase (from the end of the first step to the end of the last):
start-up and the first trace are paid once, however long the run is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from stoker.doctor.pricing import program as programs
from stoker.doctor.pricing import tuner_gain
from stoker.doctor.pricing.claims import ceiling, has_repair, held_s, repair_of, share_out
from stoker.doctor.pricing.measured import measured_gain, outrun_input
from stoker.doctor.pricing.ranking import raise_to_dearest, sort_for_repair
from stoker.doctor.pricing.repairs import (
    apply_repairs,
    is_marked,
    is_measured,
    list_timed_s,
    list_uncertain_parts,
    sum_freed,
)
from stoker.doctor.pricing.verified import find_verified_gain, find_verified_row
from stoker.doctor.probes.parts.eager import SAMPLE_S
from stoker.doctor.replay.program import Program
from stoker.doctor.replay.simulation import Draw, draws, seconds_per_step
from stoker.doctor.stalls.shared.input_repair import CROWDING, InputRepair
from stoker.records import Detail, Finding, Record, RepairPlace, Repairs, WhatIf

_DRAWS = 24
# The order covers at most this many findings, since every place in it is tried with all that are left.
_ORDERED = 8
# The share of the draws beyond each bound.
_TAIL = 0.05
# No repair gains this much, but a replay in which nothing is left would gain even more.
_BEYOND_ALL = 1e4
# Two runs of the same program differ by this much, so bounds are never closer.
_REPEATS = 0.05
# The error of a timed repair's gain, as a logarithm: among the rest of a step, caches are colder than in experiments,
# and a measured run is a little slower than a plain one.
_TIMED = 0.13
# A loss below this share of a run is too small to call its price unknown.
_NEGLIGIBLE = 0.02
MEASURED, MODELLED = "measured", "modelled"
BASIS = "speed-ups are in steps per second after the first step: start-up and the first trace are left out"


def price_record(record: Record) -> Record:
    """Return the record with its prices, or unchanged if it holds nothing to replay."""
    program = programs.of(record)
    measured = [f for f in record.findings if f.evidence == "measured" and has_repair(f.kind)]
    if program is None or not measured:
        return record
    findings = [with_price(f, program) if f in measured else f for f in record.findings]
    measured = [f for f in findings if f.what_if is not None]
    all_of_them = raise_to_dearest(what_if(program, measured), measured)
    # Some of these figures may be measured and others modelled. No part may gain more than all together.
    places = [
        dataclasses.replace(place, together=min(place.together, all_of_them.speedup))
        for place in order(program, measured)
    ]
    together = Repairs(all=all_of_them, order=places, assumptions=assumptions(measured))
    findings = sort_for_repair(findings, places)
    return dataclasses.replace(record, findings=findings, what_if=together)


def with_price(finding: Finding, program: Program) -> Finding:
    """Return the finding with its price, if known, and with the tuner's expected gain, if the tuner has a change."""
    if not is_known(finding, program):
        return dataclasses.replace(finding, what_if=None)
    gain = tuner_gain.of(program, finding)
    price = what_if(program, [finding])
    if gain is None:
        return dataclasses.replace(finding, what_if=price)
    # A finding shows only one price.
    gain["speedup"] = [price.low, price.high]
    return dataclasses.replace(finding, what_if=price, detail=Detail(**{**finding.detail, "tuner": gain}))


def is_known(finding: Finding, program: Program) -> bool:
    """Return whether the price can be known: the steps hold some of the finding's cost, or the cost is small."""
    lost = (finding.lost_s or 0.0) / (program.count * program.step_s) if program.count else 0.0
    return lost < _NEGLIGIBLE or held_s(program, [finding]) > 0


def _leave_unchanged(program: Program, draw: Draw) -> Program:
    return program


def what_if(
    program: Program,
    findings: Sequence[Finding],
    then: Callable[[Program, Draw], Program] = _leave_unchanged,
    unknown: Sequence[str] = (),
    examples: float = 1.0,
) -> WhatIf:
    """Return how much faster the run would be with these findings repaired, with bounds.

    `then` changes the repaired program further; `unknown` names what this makes uncertain, and `examples` is the
    factor by which a step then has more examples.
    """
    if then is not _leave_unchanged:
        return _price_by_run(program, findings, then, unknown, examples)
    row = find_verified_row(program, findings, _select_weighty(program, findings))
    if row is not None:
        return row.price(Limit.of(program, findings).share)
    answer, least = (
        _price_by_run(program, findings, then, unknown, examples),
        find_verified_gain(program, findings),
    )
    if answer.speedup >= least:
        return answer
    return dataclasses.replace(answer, speedup=round(least, 3), high=round(max(answer.high, least), 3))


def _price_by_run(
    program: Program,
    findings: Sequence[Finding],
    then: Callable[[Program, Draw], Program],
    unknown: Sequence[str],
    examples: float,
) -> WhatIf:
    """Return the answer of `what_if` from the run alone, without verified repairs."""
    if (
        then is _leave_unchanged
        and (gained := measured_gain(program, _select_weighty(program, findings))) is not None
    ):
        low, high = round(gained.low, 3), round(gained.high, 3)
        return WhatIf(round(gained.speedup, 3), low, high, round(gained.share, 4), None, MEASURED)
    limit = Limit.of(program, findings)
    program = share_out(program, findings)

    def gain(draw: Draw) -> float:
        if then is _leave_unchanged:
            return limit.kept(_ratio(program, findings, draw))
        before = seconds_per_step(program, draw, draw.steps)
        after = seconds_per_step(then(apply_repairs(program, findings, draw), draw), draw, draw.steps)
        return examples * before / after if after > 0 else 1.0

    names = sorted({*unknown, *(name for f in findings for name in list_uncertain_parts(program, f))})
    middle = gain(Draw())
    basis = basis_of(program, findings) if then is _leave_unchanged else MODELLED
    if then is _leave_unchanged and limit.most < 1 + _NEGLIGIBLE:
        # The gain is too small for repeated replays: Amdahl's bounds are close enough.
        return WhatIf(round(middle, 3), 1.0, round(limit.most, 3), limit.share, limit.frees or None, basis)
    chosen = draws(program, names, _DRAWS)
    if then is _leave_unchanged and all(is_marked(program, f) for f in findings if held_s(program, [f]) > 0):
        # Marked steps show how much steps differ, however busy the machine was.
        chosen = [dataclasses.replace(draw, steps=None) for draw in chosen]
    spread = sorted(gain(draw) for draw in chosen)
    cut = int(len(spread) * _TAIL)
    low, high = min(spread[cut], middle), max(spread[-1 - cut], middle)
    if then is _leave_unchanged and findings:
        low, high = _widen(program, findings, middle, low, high)
        high = max(middle, _kept_below_batches_there(program, findings, high))
        low, high = limit.kept(low), limit.kept(high)
    return WhatIf(round(middle, 3), round(low, 3), round(high, 3), limit.share, limit.frees or None, basis)


def basis_of(program: Program, findings: Sequence[Finding]) -> str:
    """Return the basis of a price: measured if the repair of every finding that counts is, and no input holds it up."""
    counting = _select_weighty(program, findings)
    if outrun_input(program, counting):
        return MODELLED
    return MEASURED if counting and all(is_measured(program, f) for f in counting) else MODELLED


def _select_weighty(program: Program, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that count: they are measured, or take a noticeable part of a step."""
    least_s = program.step_s * _NEGLIGIBLE
    return [f for f in findings if is_measured(program, f) or held_s(program, [f]) >= least_s]


def _widen(
    program: Program, findings: Sequence[Finding], middle: float, low: float, high: float
) -> tuple[float, float]:
    """Return bounds that include the run's own spread and the model's known errors, in this run and in others.

    The model's error is a part of each repair's gain, and independent for each repair.
    """
    off = min(1.0, program.unexplained)
    less, more = [math.log(middle / low), _REPEATS], [math.log(high / middle), _REPEATS]
    for finding, gain in _gains(program, findings, middle):
        if is_measured(program, finding):
            # The timed rounds and steps, or the run's own calls, are known. What remains: the step was not timed among
            # others, and the run was slowed down by measuring.
            less.append(min(gain, _TIMED + _rate_sharing(program, finding, middle)))
            more.append(min(gain, _TIMED + _rate_sharing(program, finding, middle)))
            continue
        spread = repair_of(finding.kind).spread
        less.append(gain * (spread[0] + off))
        more.append(gain * (spread[1] + off))
    return middle * math.exp(-math.hypot(*less)), middle * math.exp(math.hypot(*more))


def _kept_below_batches_there(program: Program, findings: Sequence[Finding], high: float) -> float:
    """Return the upper bound of a price. No input repair gains more than a step without any input work or wait.

    If the calls of such a step were timed, that step is the bound.
    """
    of_input = [(f, repair) for f in findings if isinstance(repair := repair_of(f.kind), InputRepair)]
    if not of_input or program.source is None:
        return high
    most = Draw(dict.fromkeys(CROWDING, 1.0))
    there = apply_repairs(program, findings, most)
    for finding, repair in of_input:
        there = repair.with_batches_there(there, finding)
    after = seconds_per_step(there, most)
    limit = program.step_s / after if after > 0 else math.inf
    return limit if any(list_timed_s(program, finding) for finding, _ in of_input) else min(high, limit)


def _rate_sharing(program: Program, finding: Finding, speedup: float) -> float:
    """Return the price's error, as a logarithm, if samples decide which part of a step belongs to the finding."""
    if is_marked(program, finding) or not repair_of(finding.kind).shares_by_samples(finding):
        return 0.0
    samples = max(1.0, (finding.seconds or 0.0) / SAMPLE_S)
    share = min(1.0, held_s(program, [finding]) / program.step_s)
    return speedup * math.sqrt(share * (1 - share) / samples)


def _gains(program: Program, findings: Sequence[Finding], middle: float) -> list[tuple[Finding, float]]:
    """Return what each finding adds to the gain of costlier ones, as logarithms that add up to the gain of all."""
    if len(findings) == 1:
        return [(findings[0], math.log(middle))]
    dearest = sorted(findings, key=lambda f: -held_s(program, [f]))[:_ORDERED]
    gains, before = [], 1.0
    for number, finding in enumerate(dearest, 1):
        after = max(before, speedup(program, dearest[:number], Draw())) if number < len(findings) else middle
        gains.append((finding, math.log(max(1.0, after / before))))
        before = after
    return gains


@dataclasses.dataclass(frozen=True)
class Limit:
    """The limit that Amdahl's law sets to a price."""

    # The findings' share of a step, and the shares, by name, that their repair may free beyond that.
    share: float
    frees: dict[str, float]
    most: float

    @classmethod
    def of(cls, program: Program, findings: Sequence[Finding]) -> Limit:
        """Return the limit for these findings together."""
        # Use the measured step, which the replay reproduces to half a per cent.
        step_s = program.step_s if program.count else seconds_per_step(program, Draw())
        held, frees = held_s(program, findings), sum_freed(program, findings)
        if step_s <= 0:
            return cls(0.0, {}, 1.0)
        shares = {name: round(seconds / step_s, 4) for name, seconds in frees.items()}
        # Shares too small to be named do not count either.
        most = ceiling(step_s, held, sum(shares.values()) * step_s)
        return cls(round(min(1.0, held / step_s), 4), {n: s for n, s in shares.items() if s > 0}, most)

    def kept(self, speedup: float) -> float:
        """Clip a speed-up to the limit: leaving something out never takes longer, nor gains more than it took."""
        return min(max(1.0, speedup), self.most)


def speedup(program: Program, findings: Sequence[Finding], draw: Draw) -> float:
    """Return the measured speed-up, or the ratio of two replays within Amdahl's limit."""
    counting = _select_weighty(program, findings)
    row = find_verified_row(program, findings, counting)
    if row is not None:
        return row.speedup
    gained = measured_gain(program, counting)
    if gained is not None:
        return max(gained.speedup, find_verified_gain(program, findings))
    kept = Limit.of(program, findings).kept(_ratio(share_out(program, findings), findings, draw))
    return max(kept, find_verified_gain(program, findings))


def _ratio(program: Program, findings: Sequence[Finding], draw: Draw) -> float:
    before = seconds_per_step(program, draw, draw.steps)
    after = seconds_per_step(apply_repairs(program, findings, draw), draw, draw.steps)
    # If nothing of a step is left in the replay, only the findings' share of it is known.
    return before / max(after, before / _BEYOND_ALL) if before > 0 else 1.0


def order(program: Program, findings: Sequence[Finding]) -> list[RepairPlace]:
    """Return the order of repair. Each place holds the finding that then gains most."""
    left = sorted(findings, key=lambda f: -(f.what_if.speedup if f.what_if else 1.0))[:_ORDERED]
    done: list[Finding] = []
    rows = []
    while left:
        best = max(left, key=lambda f: speedup(program, [*done, f], Draw()))
        left.remove(best)
        done.append(best)
        rows.append(
            RepairPlace(
                best.kind,
                best.file,
                best.line,
                alone=round(speedup(program, [best], Draw()), 3),
                together=round(speedup(program, done, Draw()), 3),
            )
        )
    return rows


def assumptions(findings: Sequence[Finding]) -> list[str]:
    """Return the assumptions of the prices, in words."""
    return [BASIS, *dict.fromkeys(repair_of(f.kind).assumes for f in findings)]
