"""Reads of tensors in the loop."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.diagnosis.draft import MIN_REPEATS, Draft, every_step, in_loop, worth
from stoker.probes.session import Measurements


def find(m: Measurements) -> Iterator[Draft]:
    """`sync-in-loop`: at every step, or less often but at a cost."""
    for site, tally in m.tallies.get("sync", {}).items():
        dear = tally.count >= MIN_REPEATS and worth(m, tally.lost_ns)
        if not dear and not (in_loop(m, tally) and every_step(m, tally.count)):
            continue
        detail = dict(tally.detail)
        if m.device_kind == "CPU" and not m.is_async:
            detail["note"] = (
                "reads are cheap on a synchronous CPU; on an accelerator every one waits for the device"
            )
        library = detail.get("through")
        remedy = (
            f"{library}() reads the tensor: call it every N steps, or after the loop." if library else None
        )
        yield Draft(
            "sync-in-loop",
            site,
            tally.count,
            tally.ns,
            tally.lost_ns,
            wait_ns=tally.wait_ns,
            copy_ns=tally.ns - tally.wait_ns,
            bytes=tally.bytes,
            remedy=remedy,
            detail=detail,
        )
