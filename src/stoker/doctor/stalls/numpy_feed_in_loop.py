"""NumPy data is converted and copied at every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.check.hoisting import hoist_conversion
from stoker.doctor.check.rule import Problem, Rule, describe
from stoker.doctor.check.source.facts import Analysis, ArrayFeed, CompiledCall
from stoker.doctor.check.source.values import Array
from stoker.doctor.probes.parts.tallies import CopiesPart
from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.repair import WARM, Repair
from stoker.doctor.stalls.shared.draft import (
    MIN_REPEATS,
    Draft,
    happens_every_step,
    is_in_loop,
    is_worth_reporting,
)

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

_SAME = (
    "It is the same array every time: make it a tensor once, before the loop (tf.constant), and pass that."
)


class _SlicedTensor(Repair):
    """The repair: rows are taken from a tensor. A slice shares the tensor's memory and costs an op or two."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with a third of a call in place of each copy."""

        def change(piece: Piece) -> Piece:
            if not self.is_own(piece, finding):
                return piece
            return replace(piece, account="dispatch", seconds=min(piece.seconds, program.call_s / 3))

        return program.with_pieces(change)


class NumpyFeedInLoop(Rule):
    """ndarrays that become tensors in code that runs at every step."""

    slug = "numpy-feed-in-loop"
    code = "STK102"
    account = "transfer"
    title = "NumPy data is converted and copied at every step"
    remedy = "Convert once before the loop, or feed the step from a tf.data pipeline."
    is_part_of_call = True
    severity = "error"
    what = (
        "Reports ndarrays that are turned into tensors in a loop of steps: by `tf.convert_to_tensor`, "
        "`tf.constant` or `tf.cast`, or by being passed to a compiled function, a model, `train_on_batch` or an "
        "operation such as `tf.matmul` that computes on them."
    )
    why = (
        "Each conversion allocates, checks and copies on the Python thread, and on a GPU the copy to the device "
        "cannot overlap with the step before it. A tf.data pipeline prepares and copies batches in the background; "
        "an array that does not change needs to be converted only once."
    )
    fix_safety = (
        "Converting a loop-invariant array once, before the loop, is offered where the array is a plain name "
        "that the loop neither assigns, changes nor hands to anything that could change it. It is safe where "
        "the file also shows that nothing else refers to the array: it is made once, by a call that returns a "
        "new array, and neither a view, nor another name, nor another function refers to it. Otherwise it is "
        "unsafe."
    )
    known_problems = (
        "Data that only exists at run time, such as the observation of a simulator, has to be copied "
        "at each step; allow it there with a comment."
    )
    repair = _SlicedTensor(
        accounts=("transfer",),
        assumes=f"data is converted once before the loop; taking rows from it copies nothing; {WARM}",
        beside=(0.0, 1.0),
        looks_at_single_pieces_of=frozenset({"transfer"}),
        experiment="resident-data",
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report every conversion, and every call with an ndarray, that runs at each step."""
        for fact in analysis.facts:
            if not fact.at.hot or fact.at.graph:
                continue
            if isinstance(fact, ArrayFeed):
                subject = describe(fact.argument) if fact.argument is not None else "an ndarray"
                message = f"{'the ndarray ' if fact.array else ''}{subject} {fact.how} at every step"
                yield self.problem(fact.at, message, hoist_conversion(fact))
            elif isinstance(fact, CompiledCall):
                for node, value in fact.arguments:
                    if isinstance(value, Array):
                        message = (
                            f"the ndarray {describe(node)} is passed to a compiled function at every step"
                        )
                        yield self.problem(fact.at, message)
                        break

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report copies at every step, and rarer ones that cost much."""
        for site, tally in m[CopiesPart].by_site.items():
            dear = tally.count >= MIN_REPEATS and is_worth_reporting(m, tally.lost_ns)
            if dear or (is_in_loop(m, tally) and happens_every_step(m, tally.count)):
                same = tally.same == tally.count
                yield Draft(
                    site,
                    tally.count,
                    tally.ns,
                    tally.lost_ns,
                    copy_ns=tally.ns,
                    bytes=tally.bytes,
                    remedy=_SAME if same else None,
                    detail={**tally.detail, "same_array": True} if same else dict(tally.detail),
                )


STALL = NumpyFeedInLoop()
