"""What a program is like once its calls are repaired: a graph for eager ops, many steps a call, no more `predict()`."""

from __future__ import annotations

from dataclasses import replace

from stoker.doctor.pricing.claims import is_own, mean_s, own_s, site_of
from stoker.doctor.pricing.pieces import Piece
from stoker.doctor.pricing.program import Program
from stoker.doctor.pricing.simulation import Draw
from stoker.records import Finding

# Rows of one batch of Keras' `predict`.
_PREDICT_BATCH = 32
# A loop that does next to nothing but `predict` has its rows beforehand; an agent's or a writer's next row depends on
# what was predicted for the last.
_NOTHING_ELSE = 0.9


def as_a_graph(program: Program, finding: Finding, draw: Draw) -> Program:
    """One compiled call in place of many ops: their kernels, less what starting each one takes."""
    # A graph starts each kernel, too, at about half the price.
    kernels = max(0.0, program.eager_kernels - program.eager_floor / 2)
    # What has all processors already cannot run side by side with anything.
    narrow = 1 - program.eager_wide
    beside = draw.between(1 - narrow * (1 - 1 / program.cores), 1.0, "kernels side by side")

    def change(step: list[Piece]) -> list[Piece]:
        own = [p for p in step if is_own(p, finding)]
        eager = sum(p.seconds for p in own if p.account == "eager")
        if not eager:
            return step
        between = python_between(step, finding)
        kept = [p for number, p in enumerate(step) if not is_own(p, finding) and number not in between]
        site = site_of(finding)
        # However few the ops, a call in their place costs no more than they did.
        seconds = min(program.call_s + program.launches_s, sum(p.seconds for p in own))
        call = Piece("launch", seconds, site, "graph", device=sum(p.device for p in own))
        if program.asynchronous:
            return [*kept, call]
        return [*kept, call, Piece("compute", eager * kernels * beside, site, "graph")]

    return replace(program, steps=[change(step) for step in program.steps])


def python_between(step: list[Piece], finding: Finding) -> set[int]:
    """Which pieces are Python between two eager ops of the finding: it runs once, while the graph is traced."""
    own = [number for number, piece in enumerate(step) if is_own(piece, finding)]
    inside = range(own[0], own[-1]) if own else range(0)
    return {
        n
        for n in inside
        if step[n].account == "python" and not step[n].name and n - 1 in own and n + 1 in own
    }


def tracing(program: Program, finding: Finding) -> dict[str, float]:
    """What goes with the ops when they become a graph."""
    seconds = sum(step[n].seconds for step in program.steps for n in python_between(step, finding))
    return {"the Python between the ops": seconds / len(program.steps)}


def in_one_call(program: Program, finding: Finding, draw: Draw) -> Program:
    """Many steps a call: the kernels stay, as quick as where no thread had to be woken."""
    if "ops" in finding.detail:
        return as_a_graph(program, finding, draw)
    quick = draw.between(program.quick, 1.0, "kernels in a loop")

    def change(step: list[Piece]) -> list[Piece]:
        launching = sum(p.seconds for p in step if is_own(p, finding))
        python = sum(p.seconds for p in step if p.account == "python" and not p.name)
        # The loop's own Python goes with it; a program's real work in Python would have to stay.
        left = max(0.0, python - launching) / python if python else 0.0
        kept = []
        for piece in step:
            if is_own(piece, finding):
                kept.append(replace(piece, seconds=0.0))
            elif piece.account == "python" and not piece.name:
                kept.append(replace(piece, seconds=piece.seconds * left))
            elif piece.account == "compute" and piece.site in (None, site_of(finding)):
                kept.append(replace(piece, seconds=piece.seconds * quick))
            else:
                kept.append(piece)
        return kept

    return replace(program, steps=[change(step) for step in program.steps])


def looping(program: Program, finding: Finding) -> dict[str, float]:
    """What goes with the calls when a loop moves into a compiled function."""
    if "ops" in finding.detail:
        return tracing(program, finding)
    python = mean_s(program.steps, lambda p: p.account == "python" and not p.name)
    return {
        "the loop's own Python": min(python, own_s(program, finding)),
        "kernels in a loop": mean_s(program.steps, lambda p: p.account == "compute") * (1 - program.quick),
    }


def predicted(program: Program, finding: Finding, draw: Draw) -> Program:
    """A compiled call in place of `predict`; of a loop that only predicts, one call for all rows."""
    total = mean_s(program.steps, lambda piece: True)
    if own_s(program, finding) > _NOTHING_ELSE * total:
        return _predicted_at_once(program, finding)
    calls = (finding.count or 0) / program.count if program.count else 1.0

    def change(step: list[Piece]) -> list[Piece]:
        own = [p for p in step if is_own(p, finding)]
        if not own:
            return step
        kept = [p for p in step if not is_own(p, finding) or p.account in ("launch", "compute")]
        graph = sum(p.seconds for p in own if p.account in ("launch", "compute"))
        # The call, and the row and its result between NumPy and TensorFlow.
        python = min(calls * program.call_s * 5 / 3, sum(p.seconds for p in own) - graph)
        return [
            *kept,
            Piece("dispatch", python, site_of(finding), "graph", device=sum(p.device for p in own)),
        ]

    return replace(program, steps=[change(step) for step in program.steps])


def _predicted_at_once(program: Program, finding: Finding) -> Program:
    """One call of `predict` for all rows: its overhead once, and one batch where there were many."""
    calls = max(1, finding.count or 1)
    batch = min(1.0, max(1.0, finding.detail.get("rows_per_call", 1.0)) / _PREDICT_BATCH)

    def change(piece: Piece) -> Piece:
        if not is_own(piece, finding):
            return piece
        share = batch if piece.account in ("compute", "launch") else 1 / calls
        return replace(piece, seconds=piece.seconds * max(share, 1 / calls))

    # What is left of its input is in the pieces.
    return replace(program, steps=[[change(piece) for piece in step] for step in program.steps], source=None)
