"""Apply repairs: a program with several findings repaired, and what this frees beyond the findings' own pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stoker.doctor.pricing.claims import claim_own, repair_of
from stoker.doctor.replay.pieces import PYTHON, Piece, mean_s
from stoker.doctor.replay.program import Program
from stoker.doctor.replay.simulation import Draw
from stoker.records import Finding

# The rest of a step becomes quicker without the stall: it no longer begins with cold caches and sleeping threads. A
# save is too long for this to matter.
UNDISTURBED = "what ran beside it, undisturbed"
_HOST = PYTHON - {"checkpoint"} | {"compute", "graph"}


# The names of what is drawn for a timed repair: one of its rounds, and a step of the run.
_ROUND, _STEP = "which round", "which step"


def list_timed_s(program: Program, finding: Finding) -> tuple[float, ...]:
    """Return the timed seconds of a finding's repaired part in a step, shortest first; empty if it was not timed."""
    timed = repair_of(finding.kind).timed(program, finding)
    return timed.rounds if timed is not None else ()


def is_measured(program: Program, finding: Finding) -> bool:
    """Return whether a finding's price assumes nothing."""
    return repair_of(finding.kind).is_measured(program, finding)


def is_marked(program: Program, finding: Finding) -> bool:
    """Return whether marked steps show what the repair replaces."""
    timed = repair_of(finding.kind).timed(program, finding)
    return timed is not None and bool(timed.replaces)


def list_uncertain_parts(program: Program, finding: Finding) -> tuple[str, ...]:
    """Return the names of what is drawn again for each replay of such a repair."""
    if is_measured(program, finding):
        return (_ROUND, _STEP)
    repair = repair_of(finding.kind)
    return (*repair.uncertain, *((UNDISTURBED,) if repair.beside[1] else ()))


def apply_repairs(program: Program, findings: Iterable[Finding], draw: Draw) -> Program:
    """Return the program, whose pieces are labelled for these findings, with all of them repaired."""
    shares = [(finding, _share(program, finding)) for finding in findings]
    for finding, share in shares:
        program = _warm(program, finding, share, draw)
    for finding, _ in shares:
        program = _repair(program, finding, draw)
    return program


def _repair(program: Program, finding: Finding, draw: Draw) -> Program:
    repair = repair_of(finding.kind)
    timed = repair.timed(program, finding)
    if timed is None or not timed.rounds or not is_measured(program, finding):
        return repair.apply(program, finding, draw)
    seconds = timed.takes_s(draw.places.get(_ROUND, 0.5), draw.places.get(_STEP, 0.5))
    return repair.apply_measured(program, finding, seconds)


def _quicken_beside(program: Program, finding: Finding) -> tuple[float, float]:
    """Return how much quicker the rest of a step becomes. If the price is measured, nothing is assumed."""
    return (0.0, 0.0) if is_measured(program, finding) else repair_of(finding.kind).beside


def _warm(program: Program, finding: Finding, share: float, draw: Draw) -> Program:
    """Return the program with the host's other work quicker: the more of a step the stall took, the colder it was."""
    repair = repair_of(finding.kind)
    least, most = _quicken_beside(program, finding)
    factor = 1 - share * (least + (most - least) * draw.places.get(UNDISTURBED, 0.5))

    def change(piece: Piece) -> Piece:
        stays = piece.account in _HOST and not repair.is_own(piece, finding)
        return replace(piece, seconds=piece.seconds * factor) if stays else piece

    return program.with_pieces(change) if factor < 1 else program


def _share(program: Program, finding: Finding) -> float:
    return (
        min(1.0, repair_of(finding.kind).own_s(program, finding) / program.step_s)
        if program.step_s > 0
        else 0.0
    )


def sum_freed(program: Program, findings: Sequence[Finding]) -> dict[str, float]:
    """Return, by name, what these repairs free at most beyond the findings' own pieces. Each name counts once."""
    most: dict[str, float] = {}
    for finding in findings:
        for name, seconds in repair_of(finding.kind).frees(claim_own(program, finding), finding).items():
            if seconds > 0:
                most[name] = max(seconds, most.get(name, 0.0))
    return {**most, **_sum_undisturbed(program, findings)}


def _sum_undisturbed(program: Program, findings: Sequence[Finding]) -> dict[str, float]:
    """Return what the rest of a step gains at most once all of these findings are gone."""
    for finding in findings:
        program = claim_own(program, finding)
    quicker = min(1.0, sum(_share(program, f) * _quicken_beside(program, f)[1] for f in findings))
    repairs = [(finding, repair_of(finding.kind)) for finding in findings]

    def stays(piece: Piece) -> bool:
        return piece.account in _HOST and not any(repair.is_own(piece, f) for f, repair in repairs)

    rest = mean_s(program.steps, stays)
    return {UNDISTURBED: rest * quicker} if rest * quicker > 0 else {}
