"""The price of each finding, of all together, and the order in which to repair them: by replaying the run.

A speed-up is of steps a second in the stepping phase (from the end of the first step to the end of the last): start-up
and the first trace are paid once however long the run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from stoker.records import Finding, Record, RepairPlace, Repairs, WhatIf
from stoker.replay import program as programs
from stoker.replay.program import Program
from stoker.replay.repairs import REMEDIES, repaired
from stoker.replay.simulation import Draw, draws, seconds_per_step

_DRAWS = 40
# The order is worked out for so many findings: each place in it asks all that are left.
_ORDERED = 8
# Of the draws, the share beyond each bound.
_TAIL = 0.05
BASIS = "speed-ups are of steps a second after the first step: start-up and the first trace are left out"


def priced(record: Record) -> Record:
    """The record with the prices put in; as it is, if it holds nothing to replay."""
    program = programs.of(record)
    measured = [f for f in record.findings if f.evidence == "measured" and f.kind in REMEDIES]
    if program is None or not measured:
        return record
    findings = [with_price(f, program) if f in measured else f for f in record.findings]
    measured = [f for f in findings if f.what_if is not None]
    places = order(program, measured)
    # In the order of repair; what is not in it by what it was found to cost.
    rank = {(place.kind, place.file, place.line): number for number, place in enumerate(places)}
    findings.sort(key=lambda f: rank.get((f.kind, f.file, f.line), len(rank)))
    together = Repairs(all=what_if(program, measured), order=places, assumptions=assumptions(measured))
    return dataclasses.replace(record, findings=findings, what_if=together)


def with_price(finding: Finding, program: Program) -> Finding:
    """The finding with its price."""
    return dataclasses.replace(finding, what_if=what_if(program, [finding]))


def _unchanged(program: Program, draw: Draw) -> Program:
    return program


def what_if(
    program: Program,
    findings: Sequence[Finding],
    then: Callable[[Program, Draw], Program] = _unchanged,
    uncertain: Sequence[str] = (),
    examples: float = 1.0,
) -> WhatIf:
    """How much faster the run would have been with these repaired, with bounds from the spread of its steps.

    `then` changes the repaired program further, which makes `uncertain` what is not known exactly; `examples` is how
    many times the examples a step then has.
    """

    def gain(draw: Draw) -> float:
        if then is _unchanged:
            return speedup(program, findings, draw)
        before = seconds_per_step(program, draw, draw.before)
        after = seconds_per_step(then(repaired(program, findings, draw), draw), draw, draw.after)
        return examples * before / after if after > 0 else 1.0

    names = sorted({*uncertain, *(name for f in findings for name in REMEDIES[f.kind].uncertain)})
    middle = gain(Draw())
    spread = sorted(gain(draw) for draw in draws(program, names, _DRAWS))
    cut = int(len(spread) * _TAIL)
    low, high = min(spread[cut], middle), max(spread[-1 - cut], middle)
    return WhatIf(round(middle, 3), round(low, 3), round(high, 3))


def speedup(program: Program, findings: Sequence[Finding], draw: Draw) -> float:
    """The ratio of two replays; to leave something out cannot take longer."""
    before = seconds_per_step(program, draw, draw.before)
    after = seconds_per_step(repaired(program, findings, draw), draw, draw.after)
    return max(1.0, before / after) if after > 0 else 1.0


def order(program: Program, findings: Sequence[Finding]) -> list[RepairPlace]:
    """What to repair first, next, and so on: at each place what then gains most."""
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
    """What the prices assume, in words."""
    return [BASIS, *dict.fromkeys(REMEDIES[f.kind].assumes for f in findings)]
