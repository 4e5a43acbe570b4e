"""The step waits for the input pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.replay.pieces import mean_s
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.input_repair import (
    AHEAD,
    CROWDED,
    LEFT,
    LEFT_OF_INPUT,
    InputRepair,
    list_uncertain,
    with_source,
)
from stoker.doctor.stalls.shared.starved_input import Cause, find_starved_pipelines

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.doctor.stalls.shared.draft import Draft
    from stoker.records import Finding


class _KeepsUp(InputRepair):
    """The repair: at best almost no input work is left, at worst just little enough that the program does not wait."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with an input between the best and the worst."""
        source = program.source
        if source is None:
            return program
        rest = mean_s(program.steps, lambda p: p.account != "input")
        place = max(0.0, draw.places.get(LEFT, 0.5) - 0.5) * 2
        least = source.seconds * LEFT_OF_INPUT
        return with_source(program, least + (max(rest, least) - least) * place, ahead=AHEAD)


class InputStarved(Stall):
    """A pipeline that cannot keep up, for a reason that is not a stall of its own."""

    slug = "input-starved"
    code = "STK308"
    account = "input"
    title = "The step waits for the input pipeline"
    remedy = (
        "Make the slow stage parallel, vectorise it, or cache its result. stoker.tune(ds) tries these and "
        "reports what each one gains."
    )
    why = "The step cannot start before its data arrives, and the device idles until then."
    repair = _KeepsUp(
        assumes="the input keeps up: at best a cache or one vectorised call leaves a twentieth of its work; "
        f"{CROWDED}",
        uncertain=list_uncertain(LEFT),
    )

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report pipelines that are too slow for no other known cause, and name the slow stage."""
        return find_starved_pipelines(m, Cause.SLOW_STAGE)


STALL = InputStarved()
