"""How much of the machine other programs used while a program ran, and whether that makes its times doubtful."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.doctor.probes.parts.environment import OTHER_WORK
from stoker.records import Record

# From this share of the processors on, reports and comparisons say so.
_BUSY = 0.1


def measure_other_work(runs: Iterable[Record]) -> float:
    """Return the largest share of the processors that other programs used during any of the runs; 0.0 if unknown."""
    shares = [run.environment.get(OTHER_WORK) for run in runs]
    return max((float(share) for share in shares if isinstance(share, (int, float))), default=0.0)


def is_busy(share: float) -> bool:
    """Return whether other programs used enough of the processors to make the times of a run doubtful."""
    return share >= _BUSY
