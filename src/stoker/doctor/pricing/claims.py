"""Decide which part of a step belongs to a finding, and so what its repair can gain at most (Amdahl's law).

Profiler windows label most pieces of work with a site. The other pieces are assigned, account by account, according to
the run's sums: a finding claims as much as it was measured to take, and no two findings claim the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial

from stoker.doctor.replay.pieces import Piece, Site, mean_s
from stoker.doctor.replay.program import Program
from stoker.doctor.replay.repair import Repair, site_of
from stoker.doctor.stall import stalls
from stoker.doctor.stalls.shared.input_repair import InputRepair
from stoker.records import Finding

# Accounts that are never part of running ops and compiled functions.
_APART = frozenset({"input", "trace", "checkpoint", "communication", "teardown", "startup"})
# The name that spans give to eager ops after a tape.
TAPE = "tape"


def has_repair(kind: str) -> bool:
    """Return whether findings of this kind have a modelled price."""
    return kind in stalls() and stalls()[kind].repair is not None


def repair_of(kind: str) -> Repair:
    """Return the repair of a kind that has one."""
    repair = stalls()[kind].repair
    if repair is None:
        raise KeyError(kind)
    return repair


def told_s(program: Program, finding: Finding) -> float:
    """Return the seconds of a step that the run's sums assign to the finding, or infinity if there are no sums."""
    repair = repair_of(finding.kind)
    timed = repair.timed(program, finding)
    if timed is not None and timed.replaces:
        return timed.replaced_s
    seconds = repair.measured_s(finding)
    if seconds is None or not program.count:
        return math.inf
    if program.undisturbed == 1.0:
        return seconds / program.count
    # The finding's own wait for processors, if it was counted, says more than that of the whole run.
    waited = finding.detail.get("waited_share")
    return seconds / program.count * (program.undisturbed if waited is None else 1 - waited)


def release_foreign_ops(program: Program, findings: Iterable[Finding]) -> Program:
    """Return the program with the labels removed from eager ops that do not belong to their tape.

    Ops bear the label of the tape opened last. But a finding stands at the first tape of its function, and a model may
    be called between two tapes. The run's sums show to which finding these ops belong.
    """
    priced = [(finding, repair_of(finding.kind)) for finding in findings if has_repair(finding.kind)]
    of_tapes = [finding for finding, repair in priced if repair.owns_tapes]
    if not of_tapes:
        return program
    sites = {site_of(finding) for finding in of_tapes}

    def change(piece: Piece) -> Piece:
        stray = piece.account == "eager" and piece.name == TAPE and piece.site not in sites
        return replace(piece, site=None) if stray else piece

    program = program.with_pieces(change)
    # Other findings may consist of eager ops without a tape.
    if any(not repair.owns_tapes and repair.accounts_of(f)[0] == "eager" for f, repair in priced):
        for finding in of_tapes:
            program = _without_surplus(program, finding)
    return program


def _without_surplus(program: Program, finding: Finding) -> Program:
    """Return the program with a tape's label removed from what exceeds the time that the sums assign to its finding."""
    repair = repair_of(finding.kind)
    own, told = repair.own_s(program, finding), told_s(program, finding)
    if own <= told:
        return program
    part = told / own

    def split(piece: Piece) -> list[Piece]:
        if piece.name != TAPE or not repair.is_own(piece, finding):
            return [piece]
        return [_scale(piece, part), replace(_scale(piece, 1 - part), site=None)]

    return program.with_steps(lambda step: [q for p in step for q in split(p)])


def with_marked_parts(program: Program, findings: Iterable[Finding]) -> Program:
    """Return the program with as much of each step labelled as a finding's as marked steps showed.

    If nothing runs alongside the host, it does not matter which pieces bear the label.
    """
    own: dict[Site, tuple[float, str]] = {}
    for finding in findings:
        timed = repair_of(finding.kind).timed(program, finding) if has_repair(finding.kind) else None
        if timed is not None and timed.replaces:
            own[site_of(finding)] = timed.replaced_s, repair_of(finding.kind).accounts_of(finding)[0]
    if not own:
        return program
    wanted = sum(seconds for seconds, _ in own.values())
    there = mean_s(program.steps, lambda piece: _may_be_marked(piece, own, _APART))
    # On a busy machine, waits for the input also include time in which other programs had the processor.
    apart = _APART if there >= wanted else frozenset[str]()
    whole = max(mean_s(program.steps, lambda piece: _may_be_marked(piece, own, apart)), wanted)

    def split(piece: Piece) -> list[Piece]:
        if not _may_be_marked(piece, own, apart):
            return [piece]
        mine = [
            replace(_scale(piece, seconds / whole), account=account, site=site, name="")
            for site, (seconds, account) in own.items()
        ]
        rest = _scale(piece, 1 - wanted / whole)
        return [*mine, replace(rest, site=None)] if rest.seconds > 0 else mine

    return program.with_steps(lambda step: [q for p in step for q in split(p)])


def _may_be_marked(piece: Piece, own: Collection[Site], apart: Collection[str]) -> bool:
    """Return whether a piece is eager work, a call, or what lies around them, and belongs to no other finding."""
    return piece.account not in apart and (piece.site is None or piece.site in own)


def share_out(program: Program, findings: Iterable[Finding]) -> Program:
    """Return the program with each finding's pieces labelled: first for findings of whole calls, then by cost."""
    kinds: defaultdict[str, list[Finding]] = defaultdict(list)
    priced = [finding for finding in findings if has_repair(finding.kind)]
    for finding in sorted(
        priced, key=lambda f: (not repair_of(f.kind).owns_whole_calls, -(f.seconds or 0.0))
    ):
        kinds[finding.kind].append(finding)
    for alike in kinds.values():
        program = _share_alike(program, alike)
    return program


def _share_alike(program: Program, alike: list[Finding]) -> Program:
    """Return the program with the pieces of one kind divided among its findings in proportion to the sums.

    The sums include the first call, which may have taken longer than many others. If they exceed the time in the
    steps, each finding gets its share of that time.
    """
    places = {None, *(site_of(finding) for finding in alike)}
    accounts = {account for finding in alike for account in repair_of(finding.kind).accounts_of(finding)}
    repair = repair_of(alike[0].kind)

    def is_theirs(piece: Piece) -> bool:
        kept = piece.site is None and piece.account == "python" and not repair.may_claim(piece)
        return piece.account in accounts and piece.site in places and not kept

    there = mean_s(program.steps, is_theirs)
    told = [told_s(program, finding) for finding in alike]
    scale = there / sum(told) if there < sum(told) < math.inf else 1.0
    for finding, seconds in zip(alike, told, strict=True):
        program = claim_own(program, finding, most=seconds * scale)
    return program


def claim_own(program: Program, finding: Finding, most: float = math.inf) -> Program:
    """Return the program with the finding's unlabelled pieces labelled, up to `most` seconds of a step."""
    repair = repair_of(finding.kind)
    left = min(told_s(program, finding), most) - repair.own_s(program, finding)
    steps = program.steps
    for account in repair.accounts_of(finding):
        loose = mean_s(steps, partial(_is_loose, account, repair))
        if left > 0 and loose > 0:
            part = min(1.0, left / loose)
            steps = [[q for p in step for q in _split(p, account, part, finding)] for step in steps]
            left -= loose * part
    return replace(program, steps=steps)


def _is_loose(account: str, repair: Repair, piece: Piece) -> bool:
    return piece.account == account and piece.site is None and repair.may_claim(piece)


def _split(piece: Piece, account: str, part: float, finding: Finding) -> list[Piece]:
    repair = repair_of(finding.kind)
    if not _is_loose(account, repair, piece):
        return [piece]
    mine = repair.label(piece, finding)
    if part >= 1.0:
        return [mine]
    # The device stays busy after the whole piece, and after its first part for that part's share of the time.
    first = replace(_scale(piece, 1 - part), tail=piece.tail * (1 - part))
    return [first, _scale(mine, part)]


def _scale(piece: Piece, factor: float) -> Piece:
    return replace(
        piece, seconds=piece.seconds * factor, wait=piece.wait * factor, device=piece.device * factor
    )


def held_s(program: Program, findings: Iterable[Finding]) -> float:
    """Return the seconds of a step that belong to these findings, each second counted once."""
    held, waited = 0.0, 0.0
    for finding in findings:
        program = claim_own(program, finding)
        # Profiler windows show the structure; the sums are exact.
        repair = repair_of(finding.kind)
        labelled = repair.own_s(program, finding)
        own = min(labelled, told_s(program, finding))
        if isinstance(repair, InputRepair):
            # A step may wait for several pipelines in one place. Together they get no more than the whole wait.
            own = min(own, labelled - waited)
            waited += own
        held += own
    return held


def ceiling(step_s: float, held: float, freed: float) -> float:
    """Return the speed-up of a step without these seconds, by Amdahl's law."""
    left = step_s - held - freed
    return step_s / left if left > step_s * 1e-6 else math.inf
