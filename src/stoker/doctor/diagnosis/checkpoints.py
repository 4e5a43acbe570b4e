"""Saving so often that it slows the run down."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.diagnosis.draft import MIN_REPEATS, Draft, worth
from stoker.doctor.probes.session import Measurements


def find(m: Measurements) -> Iterator[Draft]:
    """`checkpoint-in-loop`: many saves from one line, and a cost that shows."""
    for site, tally in m.tallies.get("checkpoint", {}).items():
        if tally.detail.get("what") == "save" and tally.count >= MIN_REPEATS and worth(m, tally.ns):
            yield Draft("checkpoint-in-loop", site, tally.count, tally.ns, tally.ns)
