"""Host data converted and copied in the loop."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.diagnosis.draft import MIN_REPEATS, Draft, every_step, in_loop, worth
from stoker.doctor.probes.session import Measurements

_SAME = (
    "It is the same array every time: make it a tensor once, before the loop (tf.constant), and pass that."
)


def find(m: Measurements) -> Iterator[Draft]:
    """`numpy-feed-in-loop`: at every step, or less often but at a cost."""
    for site, tally in m.tallies.get("transfer", {}).items():
        dear = tally.count >= MIN_REPEATS and worth(m, tally.lost_ns)
        if dear or (in_loop(m, tally) and every_step(m, tally.count)):
            same = tally.same == tally.count
            yield Draft(
                "numpy-feed-in-loop",
                site,
                tally.count,
                tally.ns,
                tally.lost_ns,
                copy_ns=tally.ns,
                bytes=tally.bytes,
                remedy=_SAME if same else None,
                detail={**tally.detail, "same_array": True} if same else dict(tally.detail),
            )
