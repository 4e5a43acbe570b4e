"""What a program is like once a finding is repaired: what goes, and what comes in its place.

A remedy is a function from a program and a finding to the program as it would be. It changes what is the finding's own
(`claims`) and nothing else, except what it says it frees. What comes in place of the cause is taken from the same run
wherever the run tells; each remedy says in words what it assumes. `call_repairs` and `input_repairs` have more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from stoker.doctor.pricing import call_repairs, input_repairs
from stoker.doctor.pricing.calibration import of_kind
from stoker.doctor.pricing.claims import claimed, is_own, mean_s, own_s
from stoker.doctor.pricing.pieces import PYTHON, Piece
from stoker.doctor.pricing.program import Program
from stoker.doctor.pricing.simulation import Draw
from stoker.records import Finding

# "Every N steps", as the remedies say.
RARELY = 50
# What stays of a step when a stall goes: it had to begin with cold caches and threads asleep. A save is too long to
# notice.
UNDISTURBED = "what ran beside it, undisturbed"
_HOST = PYTHON - {"checkpoint"} | {"compute", "graph"}

Apply = Callable[[Program, Finding, Draw], Program]
# What a repair frees beside what is the finding's own, at most: seconds of a step, by name.
Frees = Callable[[Program, Finding], dict[str, float]]


def _nothing(program: Program, finding: Finding) -> dict[str, float]:
    return {}


@dataclass(frozen=True)
class Repair:
    """How a kind is repaired, and what that assumes."""

    apply: Apply
    assumes: str
    # What is uncertain, by the names given to `Draw.between`.
    uncertain: tuple[str, ...] = ()
    frees: Frees = _nothing


def uncertain(kind: str) -> tuple[str, ...]:
    """What is drawn anew for each replay of such a repair."""
    return (*REPAIRS[kind].uncertain, *((UNDISTURBED,) if of_kind(kind).beside[1] else ()))


def repaired(program: Program, findings: Iterable[Finding], draw: Draw) -> Program:
    """The program, shared out among these findings, with all of them repaired."""
    shares = [(finding, _share(program, finding)) for finding in findings]
    for finding, share in shares:
        program = _warmer(program, finding, share, draw)
    for finding, _ in shares:
        program = REPAIRS[finding.kind].apply(program, finding, draw)
    return program


def _warmer(program: Program, finding: Finding, share: float, draw: Draw) -> Program:
    """The program with what stays on the host quicker: the more of a step the stall took, the colder was the rest."""
    least, most = of_kind(finding.kind).beside
    factor = 1 - share * (least + (most - least) * draw.places.get(UNDISTURBED, 0.5))

    def change(piece: Piece) -> Piece:
        stays = piece.account in _HOST and not is_own(piece, finding)
        return replace(piece, seconds=piece.seconds * factor) if stays else piece

    return _each(program, change) if factor < 1 else program


def _share(program: Program, finding: Finding) -> float:
    return min(1.0, own_s(program, finding) / program.step_s) if program.step_s > 0 else 0.0


def freed(program: Program, findings: Sequence[Finding]) -> dict[str, float]:
    """What these repairs free beside what is their own, at most, by name: each thing once."""
    most: dict[str, float] = {}
    for finding in findings:
        for name, seconds in REPAIRS[finding.kind].frees(claimed(program, finding), finding).items():
            if seconds > 0:
                most[name] = max(seconds, most.get(name, 0.0))
    return {**most, **_undisturbed(program, findings)}


def _undisturbed(program: Program, findings: Sequence[Finding]) -> dict[str, float]:
    """What stays, at most as much quicker as all of these together had made it slower."""
    for finding in findings:
        program = claimed(program, finding)
    quicker = min(1.0, sum(_share(program, f) * of_kind(f.kind).beside[1] for f in findings))
    rest = mean_s(program.steps, lambda p: p.account in _HOST and not any(is_own(p, f) for f in findings))
    return {UNDISTURBED: rest * quicker} if rest * quicker > 0 else {}


def _each(program: Program, change: Callable[[Piece], Piece]) -> Program:
    """The program with each piece changed."""
    return replace(program, steps=[[change(piece) for piece in step] for step in program.steps])


def _rarely(program: Program, finding: Finding, draw: Draw) -> Program:
    """Every N-th time only."""

    def change(piece: Piece) -> Piece:
        if not is_own(piece, finding):
            return piece
        return replace(piece, account="python", seconds=(piece.seconds - piece.wait) / RARELY, wait=0.0)

    return _each(program, change)


def _once(program: Program, finding: Finding, draw: Draw) -> Program:
    """One of all those times is left."""

    def change(piece: Piece) -> Piece:
        own = is_own(piece, finding)
        return replace(piece, seconds=piece.seconds / max(1, finding.count or 1)) if own else piece

    return _each(program, change)


def _feed(program: Program, finding: Finding, draw: Draw) -> Program:
    """The rows are taken from a tensor: a slice shares its memory, and costs an op or two to ask for."""

    def change(piece: Piece) -> Piece:
        if not is_own(piece, finding):
            return piece
        return replace(piece, account="dispatch", seconds=min(piece.seconds, program.call_s / 3))

    return _each(program, change)


def _traced_once(program: Program, finding: Finding, draw: Draw) -> Program:
    function = finding.detail.get("function")
    usual, between = _usual_call(program), _usual_python(program)

    def change(step: list[Piece]) -> list[Piece]:
        if not any(is_own(p, finding) for p in step):
            return step
        kept = []
        for piece in step:
            if is_own(piece, finding):
                continue
            if piece.account == "dispatch" and piece.name == function:
                # Looking for a graph that is not there, and keeping the new one, is part of tracing.
                piece = replace(piece, seconds=min(piece.seconds, usual))
            elif piece.account == "python" and not piece.name and finding.kind == "tf-function-in-loop":
                # Making the function is in the loop, too.
                piece = replace(piece, seconds=min(piece.seconds, between))
            kept.append(piece)
        return kept

    return replace(program, steps=[change(step) for step in program.steps])


def _usual_call(program: Program) -> float:
    """The Python of a call that traces nothing."""
    calls = sorted(p.seconds for s in program.steps for p in s if p.account == "dispatch" and p.site)
    return calls[len(calls) // 4] if calls else 0.0


def _usual_python(program: Program) -> float:
    python = sorted(p.seconds for s in program.steps for p in s if p.account == "python")
    return python[len(python) // 4] if python else 0.0


def _around_traces(program: Program, finding: Finding) -> dict[str, float]:
    function = finding.detail.get("function")
    found = {
        "the Python of a call that traces": mean_s(
            program.steps, lambda p: p.account == "dispatch" and p.name == function
        ),
    }
    if finding.kind == "tf-function-in-loop":
        found["making the function"] = mean_s(program.steps, lambda p: p.account == "python" and not p.name)
    return found


_GONE = f"what was done every step is done every {RARELY} steps"
_TRACED = "one trace serves all calls, and runs as the calls did that did not trace"
_WARM = "what stays is quicker, as it was where such a repair was measured"
_CROWDED = "where the input and the kernels want more processors than there are, they share them"


def _of_input(apply: Apply, assumes: str, *uncertain: str) -> Repair:
    return Repair(
        apply,
        f"{assumes}; {_CROWDED}",
        ("crowding", "lock", *uncertain),
        input_repairs.given_back,
    )


REPAIRS: dict[str, Repair] = {
    "sync-in-loop": Repair(_rarely, f"reads: {_GONE}; the host then runs ahead of the device"),
    "checkpoint-in-loop": Repair(_rarely, f"checkpoints: {_GONE}; {_WARM}"),
    "iterator-teardown": Repair(_once, "one iterator serves all epochs, and is taken down once"),
    "host-callback-per-batch": Repair(_rarely, f"callbacks: {_GONE}; {_WARM}"),
    "numpy-feed-in-loop": Repair(
        _feed,
        f"data is converted once before the loop; taking rows from it copies nothing; {_WARM}",
    ),
    "retrace-python-arg": Repair(_traced_once, f"{_TRACED}; {_WARM}", frees=_around_traces),
    "retrace-shape": Repair(_traced_once, f"{_TRACED}; {_WARM}", frees=_around_traces),
    "tf-function-in-loop": Repair(_traced_once, f"{_TRACED}; {_WARM}", frees=_around_traces),
    "eager-train-step": Repair(
        call_repairs.as_a_graph,
        "as a graph the same kernels run, between one after the other and as many at a time as there are processors",
        ("kernels side by side",),
        call_repairs.tracing,
    ),
    "launch-bound": Repair(
        call_repairs.in_one_call,
        "many steps a call: kernels take between their mean and what the quickest calls took",
        ("kernels in a loop", "kernels side by side"),
        call_repairs.looping,
    ),
    "predict-in-loop": Repair(
        call_repairs.predicted,
        f"a compiled call takes the place of predict(); a loop that only predicts gives all rows to one call; {_WARM}",
    ),
    "missing-prefetch": _of_input(input_repairs.prefetched, "the next element is made while the step runs"),
    "map-without-parallel-calls": _of_input(
        input_repairs.in_parallel, "the map runs on all processors, ahead of the step"
    ),
    "map-before-batch": _of_input(
        input_repairs.vectorised, "one call of the map for a batch costs what one for an element did"
    ),
    "python-input-pipeline": _of_input(
        input_repairs.without_python,
        "in tf.data a hundredth to a tenth of the Python stage is left",
        input_repairs.LEFT,
    ),
    "input-starved": _of_input(
        input_repairs.keeps_up,
        "the input keeps up: at best a cache or one vectorised call leaves a twentieth of its work",
        input_repairs.LEFT,
    ),
}
