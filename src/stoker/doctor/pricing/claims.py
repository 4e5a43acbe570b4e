"""What of a step is a finding's own, and so what its repair can gain at most: Amdahl's law, kept in one place.

Windows label most pieces of work with a site. What they do not label belongs, account by account, to whoever the run's
sums say took it: a finding claims as much of it as it was measured to take, and no two findings claim the same.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stoker.doctor.pricing.pieces import Piece, Site
from stoker.records import Finding

if TYPE_CHECKING:
    from stoker.doctor.pricing.program import Program

# How the spans name eager ops that follow a tape.
TAPE = "tape"
_TRACES = frozenset({"retrace-python-arg", "retrace-shape", "tf-function-in-loop"})
INPUTS = frozenset(
    {
        "missing-prefetch",
        "map-without-parallel-calls",
        "map-before-batch",
        "python-input-pipeline",
        "input-starved",
    }
)
# All that happens inside these calls is theirs, whatever it is.
_WHOLE_CALLS = frozenset({"predict-in-loop", "host-callback-per-batch"})
# The accounts a finding's time is on, in the order in which what nobody labelled is claimed.
_ACCOUNTS: dict[str, tuple[str, ...]] = {
    "sync-in-loop": ("sync",),
    "checkpoint-in-loop": ("checkpoint",),
    "iterator-teardown": ("teardown",),
    "numpy-feed-in-loop": ("transfer",),
    "host-callback-per-batch": ("python", "eager", "dispatch"),
    "eager-train-step": ("eager", "dispatch"),
    "launch-bound": ("dispatch", "launch", "graph"),
    "predict-in-loop": (
        *("trace", "input", "eager", "dispatch", "launch", "compute", "graph"),
        *("transfer", "sync", "python"),
    ),
    **dict.fromkeys(_TRACES, ("trace",)),
    **dict.fromkeys(INPUTS, ("input",)),
}


def site_of(finding: Finding) -> Site:
    """Where it is."""
    return finding.file, finding.line


def accounts_of(finding: Finding) -> tuple[str, ...]:
    """The accounts its time is on."""
    if finding.kind == "launch-bound" and "ops" in finding.detail:
        return _ACCOUNTS["eager-train-step"]
    return _ACCOUNTS[finding.kind]


def told_s(program: Program, finding: Finding) -> float:
    """Seconds of a step that the run's sums give to the finding; without sums, all there is."""
    # Reads and saves inside a callback are findings of their own; of a trace, the first execution is lost as well.
    net = finding.kind == "host-callback-per-batch" or finding.kind in _TRACES
    seconds = finding.lost_s if net else finding.seconds
    if seconds is None or not program.count:
        return math.inf
    return seconds / program.count


def is_own(piece: Piece, finding: Finding) -> bool:
    """Whether a piece is labelled as the finding's."""
    if piece.account not in accounts_of(finding):
        return False
    if finding.kind in INPUTS:
        # A pipeline is read elsewhere than it is made.
        return piece.site is not None
    if finding.kind in _TRACES and piece.name:
        return piece.name == finding.detail.get("function")
    return piece.site == site_of(finding)


def loosened(program: Program, findings: Iterable[Finding]) -> Program:
    """The program with eager ops freed of the label of a tape that they are not of.

    Ops are labelled by the tape opened last, while a finding stands at the first tape of its function, and a model may
    be called between two tapes. The run's sums tell which finding they are of.
    """
    findings = list(findings)
    of_tapes = [finding for finding in findings if finding.kind == "eager-train-step"]
    if not of_tapes:
        return program
    sites = {site_of(finding) for finding in of_tapes}

    def change(piece: Piece) -> Piece:
        stray = piece.account == "eager" and piece.name == TAPE and piece.site not in sites
        return replace(piece, site=None) if stray else piece

    program = replace(program, steps=[[change(piece) for piece in step] for step in program.steps])
    if any(finding.kind == "launch-bound" and "ops" in finding.detail for finding in findings):
        for finding in of_tapes:
            program = _without_surplus(program, finding)
    return program


def _without_surplus(program: Program, finding: Finding) -> Program:
    """The program with what bears the label of a tape beyond what the sums give to its finding freed of it."""
    own, told = own_s(program, finding), told_s(program, finding)
    if own <= told:
        return program
    part = told / own

    def split(piece: Piece) -> list[Piece]:
        if piece.name != TAPE or not is_own(piece, finding):
            return [piece]
        return [_scaled(piece, part), replace(_scaled(piece, 1 - part), site=None)]

    return replace(program, steps=[[q for p in step for q in split(p)] for step in program.steps])


def shared_out(program: Program, findings: Iterable[Finding]) -> Program:
    """The program with each finding's own pieces labelled as its own: findings of whole calls first, dearest first."""
    kinds: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in sorted(findings, key=lambda f: (f.kind not in _WHOLE_CALLS, -(f.seconds or 0.0))):
        if finding.kind in _ACCOUNTS:
            kinds[finding.kind].append(finding)
    for alike in kinds.values():
        program = _among(program, alike)
    return program


def _among(program: Program, alike: list[Finding]) -> Program:
    """The program with what findings of one kind hold shared out among them, as the sums have it.

    The sums hold the first call, too, which may have taken longer than many others: where they are more than there is,
    each finding's part of it counts.
    """
    places = {None, *(site_of(finding) for finding in alike)}
    accounts = {account for finding in alike for account in accounts_of(finding)}
    there = mean_s(program.steps, lambda piece: piece.account in accounts and piece.site in places)
    told = [told_s(program, finding) for finding in alike]
    scale = there / sum(told) if there < sum(told) < math.inf else 1.0
    for finding, seconds in zip(alike, told, strict=True):
        program = claimed(program, finding, most=seconds * scale)
    return program


def claimed(program: Program, finding: Finding, most: float = math.inf) -> Program:
    """The program with what is the finding's own, and bears no label yet, labelled; of that, `most` at most."""
    left = min(told_s(program, finding), most) - own_s(program, finding)
    steps = program.steps
    for account in accounts_of(finding):
        loose = mean_s(steps, partial(_is_loose, account, finding))
        if left > 0 and loose > 0:
            part = min(1.0, left / loose)
            steps = [[q for p in step for q in _split(p, account, part, finding)] for step in steps]
            left -= loose * part
    return replace(program, steps=steps)


def _is_loose(account: str, finding: Finding, piece: Piece) -> bool:
    if piece.account != account or piece.site is not None:
        return False
    # The trace of another function, of TensorFlow's own, is not this one's.
    return finding.kind not in _TRACES or not piece.name


def _split(piece: Piece, account: str, part: float, finding: Finding) -> list[Piece]:
    if not _is_loose(account, finding, piece):
        return [piece]
    name = finding.detail.get("function", "") if finding.kind in _TRACES else piece.name
    mine = replace(piece, site=site_of(finding), name=name)
    if part >= 1.0:
        return [mine]
    # The device goes on after the whole of it; after the first part alone it would for that part's share of the time.
    first = replace(_scaled(piece, 1 - part), tail=piece.tail * (1 - part))
    return [first, _scaled(mine, part)]


def _scaled(piece: Piece, factor: float) -> Piece:
    return replace(
        piece, seconds=piece.seconds * factor, wait=piece.wait * factor, device=piece.device * factor
    )


def own_s(program: Program, finding: Finding) -> float:
    """Seconds of a step that are labelled as the finding's."""
    return mean_s(program.steps, lambda piece: is_own(piece, finding))


def mean_s(steps: Sequence[Sequence[Piece]], wanted: Callable[[Piece], bool]) -> float:
    """Seconds of a step, on average, in pieces of this sort."""
    return statistics.fmean(sum(p.seconds for p in step if wanted(p)) for step in steps)


def held_s(program: Program, findings: Iterable[Finding]) -> float:
    """Seconds of a step that these findings hold, each second counted once."""
    held, waited = 0.0, 0.0
    for finding in findings:
        program = claimed(program, finding)
        # Windows show the structure, the sums are exact.
        own = min(own_s(program, finding), told_s(program, finding))
        if finding.kind in INPUTS:
            # Several pipelines may be waited for in one place: together no longer than all the waiting there is.
            own = min(own, own_s(program, finding) - waited)
            waited += own
        held += own
    return held


def ceiling(step_s: float, held: float, freed: float) -> float:
    """Amdahl's law: the speed-up of a step of which this much is gone."""
    left = step_s - held - freed
    return step_s / left if left > step_s * 1e-6 else math.inf
