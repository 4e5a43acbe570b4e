"""What a program is like once a finding is repaired: what goes, and what comes in its place.

A remedy is a function from a program and a finding to the program as it would be. What comes in place of the cause is
taken from the same run wherever the run tells; each remedy says in words what it assumes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from stoker.probes.input_wait import FIRST_ELEMENT
from stoker.records import Finding
from stoker.replay.feeding import Source
from stoker.replay.pieces import Piece
from stoker.replay.program import Program
from stoker.replay.simulation import Draw

# "Every N steps", as the remedies say.
RARELY = 50
# Rows of one batch of Keras' `predict`.
_PREDICT_BATCH = 32
# What is left of making an element whose result is cached or that is made by one vectorised call.
_LEFT_OF_INPUT = 0.05
# What is left of a Python stage whose work tf.data does, a batch at a time.
_LEFT_OF_PYTHON = (0.01, 0.1)
_LEFT = "what is left of the input"
_AHEAD = 8
_UNDISTURBED = "undisturbed"

Apply = Callable[[Program, Finding, Draw], Program]


@dataclass(frozen=True)
class Remedy:
    """How a kind is repaired, and what that assumes."""

    apply: Apply
    assumes: str
    # What is uncertain, by the names given to `Draw.between`.
    uncertain: tuple[str, ...] = ()


def repaired(program: Program, findings: Iterable[Finding], draw: Draw) -> Program:
    """The program with all of these findings repaired."""
    for finding in findings:
        remedy = REMEDIES.get(finding.kind)
        if remedy is not None:
            program = remedy.apply(program, finding, draw)
    return program


def _each(program: Program, change: Callable[[Piece], Piece | None]) -> Program:
    """The program with each piece changed, or gone."""
    steps = [[new for piece in step if (new := change(piece)) is not None] for step in program.steps]
    return replace(program, steps=steps)


def _at(piece: Piece, finding: Finding) -> bool:
    """Whether a piece is the finding's; one that no window saw belongs to whoever has its account."""
    return piece.site is None or piece.site == (finding.file, finding.line)


def _undisturbed(program: Program, draw: Draw) -> Program:
    """The program with nothing long between its compiled calls any more; once, however much was taken out."""
    factor = draw.between(program.calm, 1.0, _UNDISTURBED)

    def change(piece: Piece) -> Piece:
        called = piece.account in ("compute", "graph")
        return replace(piece, seconds=piece.seconds * factor) if called else piece

    return replace(_each(program, change), calm=1.0)


def _rarely(account: str) -> Apply:
    """Every N-th time only."""

    def apply(program: Program, finding: Finding, draw: Draw) -> Program:
        def change(piece: Piece) -> Piece | None:
            if piece.account != account or not _at(piece, finding):
                return piece
            return replace(piece, account="python", seconds=(piece.seconds - piece.wait) / RARELY, wait=0.0)

        changed = _each(program, change)
        return changed if account == "sync" else _undisturbed(changed, draw)

    return apply


def _callback(program: Program, finding: Finding, draw: Draw) -> Program:
    def change(piece: Piece) -> Piece:
        own = piece.account == "python" and piece.site == (finding.file, finding.line)
        return replace(piece, seconds=piece.seconds / RARELY) if own else piece

    return _undisturbed(_each(program, change), draw)


def _feed(program: Program, finding: Finding, draw: Draw) -> Program:
    """The rows are taken from a tensor: a slice shares its memory, and costs an op or two to ask for."""

    def change(piece: Piece) -> Piece:
        if piece.account != "transfer" or not _at(piece, finding):
            return piece
        return replace(piece, account="dispatch", seconds=min(piece.seconds, program.call_s / 3))

    return _undisturbed(_each(program, change), draw)


def _traced_once(program: Program, finding: Finding, draw: Draw) -> Program:
    function = finding.detail.get("function")
    calls = sorted(p.seconds for s in program.steps for p in s if p.account == "dispatch" and p.site)
    usual = calls[len(calls) // 4] if calls else 0.0
    python = sorted(p.seconds for s in program.steps for p in s if p.account == "python")
    between = python[len(python) // 4] if python else 0.0

    def change(step: list[Piece]) -> list[Piece]:
        ours = [p for p in step if p.account == "trace" and (p.site is None or p.name == function)]
        if not ours:
            return step
        kept = []
        for piece in step:
            if piece in ours:
                continue
            if piece.account == "dispatch" and piece.name == function:
                # Looking for a graph that is not there, and keeping the new one, is part of tracing.
                piece = replace(piece, seconds=min(piece.seconds, usual))
            elif piece.account == "python" and not piece.name and finding.kind == "tf-function-in-loop":
                # Making the function is in the loop, too.
                piece = replace(piece, seconds=min(piece.seconds, between))
            kept.append(piece)
        return kept

    return _undisturbed(replace(program, steps=[change(step) for step in program.steps]), draw)


def _as_a_graph(program: Program, finding: Finding, draw: Draw) -> Program:
    """One compiled call in place of many ops: their kernels, less what starting each one takes."""
    kernels = max(0.0, program.eager_kernels - program.eager_floor)
    beside = draw.between(1 / program.cores, 1.0, "kernels side by side")

    def change(step: list[Piece]) -> list[Piece]:
        eager = [p for p in step if p.account == "eager"]
        if not eager:
            return step
        kept = [p for p in step if p.account != "eager" and not (p.account == "dispatch" and p.site is None)]
        work = sum(p.seconds for p in eager) * kernels * beside
        device = sum(p.device for p in eager)
        call = Piece("launch", program.call_s + program.launches_s, eager[0].site, "graph", device=device)
        return [*kept, call] if program.asynchronous else [*kept, call, Piece("compute", work, name="graph")]

    return replace(program, steps=[change(step) for step in program.steps])


def _in_one_call(program: Program, finding: Finding, draw: Draw) -> Program:
    """Many steps a call: the kernels stay, as quick as where no thread had to be woken."""
    if "ops" in finding.detail:
        return _as_a_graph(program, finding, draw)
    quick = draw.between(program.quick, 1.0, "kernels in a loop")

    def change(step: list[Piece]) -> list[Piece]:
        launching = sum(p.seconds for p in step if p.account in ("dispatch", "launch", "graph"))
        python = sum(p.seconds for p in step if p.account == "python" and not p.name)
        # The loop's own Python goes with it; a program's real work in Python would have to stay.
        left = max(0.0, python - launching) / python if python else 0.0
        kept = []
        for piece in step:
            if piece.account in ("dispatch", "launch", "graph"):
                kept.append(replace(piece, seconds=0.0))
            elif piece.account == "python" and not piece.name:
                kept.append(replace(piece, seconds=piece.seconds * left))
            elif piece.account == "compute":
                kept.append(replace(piece, seconds=piece.seconds * quick))
            else:
                kept.append(piece)
        return kept

    return replace(program, steps=[change(step) for step in program.steps])


def _predicted_at_once(program: Program, finding: Finding, draw: Draw) -> Program:
    """One call of `predict` for all rows: its overhead once, and one batch where there were many."""
    calls = max(1, finding.count or 1)
    batch = min(1.0, max(1.0, finding.detail.get("rows_per_call", 1.0)) / _PREDICT_BATCH)

    def change(piece: Piece) -> Piece:
        share = batch if piece.account in ("compute", "launch") else 1 / calls
        return replace(piece, seconds=piece.seconds * max(share, 1 / calls))

    # What is left of its input is in the pieces.
    return replace(_each(program, change), source=None)


def _with_source(program: Program, seconds: float, **changes: object) -> Program:
    """The program with another input, an element of which takes so long to make; a new iterator's first one, too."""
    source = program.source
    if source is None:
        return program
    share = min(1.0, seconds / source.seconds) if source.seconds else 1.0

    def change(piece: Piece) -> Piece:
        return replace(piece, seconds=piece.seconds * share) if piece.name == FIRST_ELEMENT else piece

    changed = replace(source, seconds=seconds, **changes)  # type: ignore[arg-type]
    return replace(_each(program, change), source=changed)


def _prefetched(program: Program, finding: Finding, draw: Draw) -> Program:
    return _with_source(program, program.source.seconds, ahead=_AHEAD) if program.source else program


def _in_parallel(program: Program, finding: Finding, draw: Draw) -> Program:
    source = program.source
    if source is None:
        return program
    seconds = source.seconds * (1 - source.slow_share + source.slow_share / program.cores)
    return _with_source(program, seconds, ahead=_AHEAD, threads=float(program.cores))


def _vectorised(program: Program, finding: Finding, draw: Draw) -> Program:
    return _without_slow_stage(program, lambda source: 1 / source.slow_calls)


def _without_python(program: Program, finding: Finding, draw: Draw) -> Program:
    left = draw.between(*_LEFT_OF_PYTHON, _LEFT)
    program = _without_slow_stage(program, lambda source: left)
    return _with_source(program, program.source.seconds, python=False) if program.source else program


def _without_slow_stage(program: Program, left: Callable[[Source], float]) -> Program:
    source = program.source
    if source is None:
        return program
    seconds = source.seconds * (1 - source.slow_share + source.slow_share * left(source))
    return _with_source(program, seconds, ahead=_AHEAD)


def _keeps_up(program: Program, finding: Finding, draw: Draw) -> Program:
    """At best next to no work is left; at worst just so little that nobody waits."""
    source = program.source
    if source is None:
        return program
    rest = statistics.fmean(sum(p.seconds for p in step if p.account != "input") for step in program.steps)
    place = max(0.0, draw.places.get(_LEFT, 0.5) - 0.5) * 2
    least = source.seconds * _LEFT_OF_INPUT
    return _with_source(program, least + (max(rest, least) - least) * place, ahead=_AHEAD)


_GONE = f"what was done every step is done every {RARELY} steps"
_TRACED = "one trace serves all calls, and runs as the calls did that did not trace"
_CALM = "compiled calls are then between their mean and their quickest quarter"
_SHARED = ("crowding", "lock")
_CROWDED = "where the input and the kernels want more processors than there are, they share them"

REMEDIES: dict[str, Remedy] = {
    "sync-in-loop": Remedy(_rarely("sync"), f"reads: {_GONE}; the host then runs ahead of the device"),
    "checkpoint-in-loop": Remedy(_rarely("checkpoint"), f"checkpoints: {_GONE}; {_CALM}", (_UNDISTURBED,)),
    "host-callback-per-batch": Remedy(_callback, f"callbacks: {_GONE}; {_CALM}", (_UNDISTURBED,)),
    "numpy-feed-in-loop": Remedy(
        _feed,
        f"data is converted once before the loop; taking rows from it copies nothing; {_CALM}",
        (_UNDISTURBED,),
    ),
    "retrace-python-arg": Remedy(_traced_once, f"{_TRACED}; {_CALM}", (_UNDISTURBED,)),
    "retrace-shape": Remedy(_traced_once, f"{_TRACED}; {_CALM}", (_UNDISTURBED,)),
    "tf-function-in-loop": Remedy(_traced_once, f"{_TRACED}; {_CALM}", (_UNDISTURBED,)),
    "eager-train-step": Remedy(
        _as_a_graph,
        "as a graph the same kernels run, between one after the other and as many at a time as there are processors",
        ("kernels side by side",),
    ),
    "launch-bound": Remedy(
        _in_one_call,
        "many steps a call: kernels take between their mean and what the quickest calls took",
        ("kernels in a loop", "kernels side by side"),
    ),
    "predict-in-loop": Remedy(_predicted_at_once, "all rows are known beforehand and predicted in one call"),
    "missing-prefetch": Remedy(
        _prefetched, f"the next element is made while the step runs; {_CROWDED}", _SHARED
    ),
    "map-without-parallel-calls": Remedy(
        _in_parallel, f"the map runs on all processors, ahead of the step; {_CROWDED}", _SHARED
    ),
    "map-before-batch": Remedy(
        _vectorised, f"one call of the map for a batch costs what one for an element did; {_CROWDED}", _SHARED
    ),
    "python-input-pipeline": Remedy(
        _without_python,
        f"in tf.data a hundredth to a tenth of the Python stage is left; {_CROWDED}",
        (*_SHARED, _LEFT),
    ),
    "input-starved": Remedy(
        _keeps_up,
        f"the input keeps up: at best a cache or one vectorised call leaves a twentieth of its work; {_CROWDED}",
        (*_SHARED, _LEFT),
    ),
}
