"""Host data converted and copied in the loop."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.diagnosis.draft import MIN_REPEATS, Draft, every_step, in_loop, worth
from stoker.probes.session import Measurements


def find(m: Measurements) -> Iterator[Draft]:
    """`numpy-feed-in-loop`: at every step, or less often but at a cost."""
    for site, tally in m.tallies.get("transfer", {}).items():
        if not in_loop(m, tally):
            continue
        if every_step(m, tally.count) or (tally.count >= MIN_REPEATS and worth(m, tally.lost_ns)):
            yield Draft(
                "numpy-feed-in-loop",
                site,
                tally.count,
                tally.ns,
                tally.lost_ns,
                copy_ns=tally.ns,
                bytes=tally.bytes,
                detail=dict(tally.detail),
            )
