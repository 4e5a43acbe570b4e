"""What a program is like once its input is repaired: made ahead, in parallel, by fewer calls, without Python."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace

from stoker.doctor.pricing.feeding import Source
from stoker.doctor.pricing.pieces import PYTHON, Piece
from stoker.doctor.pricing.program import Program
from stoker.doctor.pricing.simulation import Draw, slowdowns
from stoker.doctor.probes.pipelines import FIRST_ELEMENT
from stoker.records import Finding

# What is left of making an element whose result is cached or that is made by one vectorised call.
LEFT_OF_INPUT = 0.05
# What is left of a Python stage whose work tf.data does, a batch at a time.
LEFT_OF_PYTHON = (0.01, 0.1)
LEFT = "what is left of the input"
AHEAD = 8


def with_source(program: Program, seconds: float, **changes: object) -> Program:
    """The program with another input, an element of which takes so long to make; a new iterator's first one, too."""
    source = program.source
    if source is None:
        return program
    share = min(1.0, seconds / source.seconds) if source.seconds else 1.0

    def change(piece: Piece) -> Piece:
        return replace(piece, seconds=piece.seconds * share) if piece.name == FIRST_ELEMENT else piece

    changed = replace(source, seconds=seconds, **changes)  # type: ignore[arg-type]
    steps = [[change(piece) for piece in step] for step in program.steps]
    return replace(program, steps=steps, source=changed)


def prefetched(program: Program, finding: Finding, draw: Draw) -> Program:
    """The next element is made while the step runs."""
    return with_source(program, program.source.seconds, ahead=AHEAD) if program.source else program


def in_parallel(program: Program, finding: Finding, draw: Draw) -> Program:
    """The slow stage on all processors, ahead of the step."""
    source = program.source
    if source is None:
        return program
    seconds = source.seconds * (1 - source.slow_share + source.slow_share / program.cores)
    return with_source(program, seconds, ahead=AHEAD, threads=float(program.cores))


def vectorised(program: Program, finding: Finding, draw: Draw) -> Program:
    """The slow stage is called once for a batch."""
    return _without_slow_stage(program, lambda source: 1 / source.slow_calls)


def without_python(program: Program, finding: Finding, draw: Draw) -> Program:
    """tf.data does what Python did, a batch at a time."""
    left = draw.between(*LEFT_OF_PYTHON, LEFT)
    program = _without_slow_stage(program, lambda source: left)
    return with_source(program, program.source.seconds, python=False) if program.source else program


def _without_slow_stage(program: Program, left: Callable[[Source], float]) -> Program:
    source = program.source
    if source is None:
        return program
    seconds = source.seconds * (1 - source.slow_share + source.slow_share * left(source))
    return with_source(program, seconds, ahead=AHEAD)


def keeps_up(program: Program, finding: Finding, draw: Draw) -> Program:
    """At best next to no work is left; at worst just so little that nobody waits."""
    source = program.source
    if source is None:
        return program
    rest = statistics.fmean(sum(p.seconds for p in step if p.account != "input") for step in program.steps)
    place = max(0.0, draw.places.get(LEFT, 0.5) - 0.5) * 2
    least = source.seconds * LEFT_OF_INPUT
    return with_source(program, least + (max(rest, least) - least) * place, ahead=AHEAD)


def given_back(program: Program, finding: Finding) -> dict[str, float]:
    """What the rest of a step gains from an input that is no longer at work beside it."""
    measured = program.measured
    if measured is None:
        return {}
    kernels, lock = slowdowns(program, measured, measured.duty, Draw({"crowding": 1.0, "lock": 1.0}))
    spent = {
        name: statistics.fmean(
            sum(p.seconds for p in step if p.account in accounts) for step in program.steps
        )
        for name, accounts in (("compute", ("compute",)), ("python", PYTHON))
    }
    return {
        "processors the input kept from kernels": spent["compute"] * (1 - 1 / kernels),
        "Python's lock, which the input held": spent["python"] * (1 - 1 / lock),
    }
