"""The calls of `stoker.tune` in a run: rates, the stages before and after, changes, and what was left alone."""

from __future__ import annotations

from typing import Any

from stoker.doctor.report import tuning
from stoker.records import Record, TunedStage, TuningRow

_MOST = 10
# HTML does not show plain spaces at the beginning of a cell.
_INDENT = "\u00a0\u00a0"


def tunings(record: Record) -> list[dict[str, Any]]:
    """Return a card for each call."""
    return [_card(row) for row in record.tables.tunings[:_MOST]]


def _card(row: TuningRow) -> dict[str, Any]:
    return {
        "where": row.where,
        "sentence": tuning.headline(row),
        "head": list(tuning.HEAD),
        "trees": [
            {"title": title, "rows": [_cells(stage) for stage in stages]}
            for title, stages in tuning.trees(row)
        ],
        "changes": [f"{one.name}: {one.stage}{tuning.factor(one.before, one.after)}" for one in row.changes],
        "evidence": tuning.evidence(row) if row.changes else "",
        "left": [f"{one.name}: {one.stage}: {one.why}" for one in row.left],
    }


def _cells(stage: TunedStage) -> list[str]:
    return [_INDENT * stage.depth + stage.stage, *tuning.figures(stage)]
