"""The model is saved so often that saving slows the run down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.tallies import CheckpointsPart
from stoker.doctor.replay.repair import RARE, WARM, DoneRarely
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import MIN_REPEATS, Draft, is_worth_reporting

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements


class CheckpointInLoop(Stall):
    """Many saves from one line."""

    slug = "checkpoint-in-loop"
    code = "STK506"
    account = "checkpoint"
    title = "The model is saved so often that saving slows the run down"
    remedy = "Save every N steps or minutes, or once an epoch."
    why = "Training stops while the weights are written, and most of those files are never read."
    repair = DoneRarely(
        accounts=("checkpoint",),
        assumes=f"checkpoints: {RARE}; {WARM}",
        beside=(0.0, 0.5),
        only_leaves_out=True,
    )

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report lines that save many times, at a noticeable cost."""
        for site, tally in m[CheckpointsPart].by_site.items():
            if (
                tally.detail.get("what") == "save"
                and tally.count >= MIN_REPEATS
                and is_worth_reporting(m, tally.ns)
            ):
                waited = round(min(1.0, tally.queued_ns / tally.ns), 4)
                yield Draft(site, tally.count, tally.ns, tally.ns, detail={"waited_share": waited})


STALL = CheckpointInLoop()
