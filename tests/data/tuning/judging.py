"""A judge that keeps every change, faster or not: what is tested is whether the result is equal."""

from __future__ import annotations

from typing import Any

from stoker.data.tuning.changes import PipelineChange, TuningRequest
from stoker.data.tuning.figures import KeptChange, TuningReport
from stoker.data.tuning.tuner import tune_pipeline

GENERATOR, MAP, CACHE = "generator drained in chunks", "map moved behind batch", "cache"
NUMBERS, OUT = "batches gathered by row number", "map moved out of interleave and behind batch"


class Always:
    """Keeps everything, times nothing."""

    def better(self, change: PipelineChange, pipeline: Any) -> KeptChange:
        return KeptChange(change.name, change.stage, None, None)

    def measure(self, report: TuningReport, pipeline: Any, tuned: Any) -> bool:
        return True

    def enough(self, report: TuningReport, pipeline: Any) -> bool:
        return False


def changed(ds: Any, allow: str = "exact", memory: int = 1 << 30) -> tuple[Any, TuningReport]:
    """The pipeline with every change that is possible."""
    return tune_pipeline(ds, TuningRequest(memory, allow), Always())


def made(report: TuningReport) -> set[str]:
    """The changes that concern functions or epochs; the others are made nearly everywhere."""
    return {change.name for change in report.changes} & {GENERATOR, MAP, CACHE, OUT}
