"""Each pass creates a new iterator, and deleting the old one blocks the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.environment import EnvironmentPart
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.repair import Repair
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft, find_commonest_site, is_worth_reporting

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

# A tenth of a second an epoch is usual. If epochs are long, this is not worth rewriting the loop.
_MIN_SHARE = 0.05


class _DoneOnce(Repair):
    """The repair: one iterator is deleted instead of one for each epoch."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with the finding's time divided by the number of its iterators."""

        def change(piece: Piece) -> Piece:
            own = self.is_own(piece, finding)
            return replace(piece, seconds=piece.seconds / max(1, finding.count or 1)) if own else piece

        return program.with_pieces(change)


class IteratorTeardown(Stall):
    """A new iterator for every epoch, each deleted again."""

    slug = "iterator-teardown"
    code = "STK309"
    account = "teardown"
    title = "Each pass creates a new iterator, and deleting the old one blocks the program"
    remedy = (
        "Iterate once over dataset.repeat(epochs), or turn off tf.data's autotuner for this pipeline "
        "(options.autotune.enabled = False)."
    )
    why = (
        "Each `for` over a dataset creates an iterator, and deleting an iterator blocks until tf.data's "
        "autotuner has stopped."
    )
    repair = _DoneOnce(accounts=("teardown",), assumes="one iterator serves all epochs, and is deleted once")

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report pipelines whose iterators take long to delete. One deletion is needed; the others are lost time."""
        for pipeline in m[InputPart].pipelines:
            site = find_commonest_site(pipeline.sites)
            if site is None or pipeline.teardowns < 2:
                continue
            # The program waits for a thread to end. On a busy machine, that thread waits for a processor.
            waited = pipeline.teardown_ns * (1 - m[EnvironmentPart].other_work)
            lost = int(waited * (pipeline.teardowns - 1) / pipeline.teardowns)
            if is_worth_reporting(m, lost, share=_MIN_SHARE):
                yield Draft(site, pipeline.teardowns, pipeline.teardown_ns, lost)


STALL = IteratorTeardown()
