"""A judge that keeps every change, faster or not: what is tested is whether the result is equal."""

from __future__ import annotations

from typing import Any

from stoker.data.tuning.changes import Change, Request
from stoker.data.tuning.figures import Kept, Report
from stoker.data.tuning.tuner import tune_pipeline

GENERATOR, MAP, CACHE = "generator drained in chunks", "map moved behind batch", "cache"
NUMBERS, OUT = "batches gathered by row number", "map moved out of interleave and behind batch"


class Always:
    """Keeps everything, times nothing."""

    def better(self, change: Change, pipeline: Any) -> Kept:
        return Kept(change.name, change.stage, None, None)

    def measure(self, report: Report, pipeline: Any, tuned: Any) -> bool:
        return True

    def enough(self, report: Report, pipeline: Any) -> bool:
        return False


def changed(ds: Any, allow: str = "exact", memory: int = 1 << 30) -> tuple[Any, Report]:
    """The pipeline with every change that is possible."""
    return tune_pipeline(ds, Request(memory, allow, seconds=0.001), Always())


def made(report: Report) -> set[str]:
    """The changes that concern functions or epochs; the others are made nearly everywhere."""
    return {change.name for change in report.changes} & {GENERATOR, MAP, CACHE, OUT}
