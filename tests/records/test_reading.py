"""Reading records strictly: what is wrong is said with the field, what it must be, and what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.records import Damaged, Record, Tables, Timeline, TraceRow, plain, read
from tests.doctor.report.page.pages import full_record


def damaged(path: str, value: Any) -> dict[str, Any]:
    """A full record with the value at that path replaced."""
    data: dict[str, Any] = json.loads(json.dumps(full_record().to_json()))
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    spot: Any = data
    for part in way:
        spot = spot[part]
    spot[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("steps", "many", "steps must be a whole number, not 'many'"),
        ("steps", True, "steps must be a whole number, not True"),
        ("steps", 3.5, "steps must be a whole number, not 3.5"),
        ("wall_s", None, "wall_s must be a number, not None"),
        ("accounts.sync", "5 s", "accounts.sync must be a number, not '5 s'"),
        ("accounts", [], "accounts must be an object, not []"),
        ("findings", {}, "findings must be a list, not {}"),
        ("findings.1.line", "40", "findings[1].line must be a whole number, not '40'"),
        ("findings.0.what_if.low", "x", "findings[0].what_if.low must be a number, not 'x'"),
        (
            "findings.1.detail.changes.0.argument",
            3,
            "findings[1].detail.changes[0].argument must be text, not 3",
        ),
        ("tables.syncs.0.bytes", "1 MB", "tables.syncs[0].bytes must be a whole number, not '1 MB'"),
        ("timeline.windows.0.steps", 3, "timeline.windows[0].steps must be a list, not 3"),
        (
            "timeline.windows.1.lanes.0.spans.2.3",
            "x",
            "timeline.windows[1].lanes[0].spans[2][3] must be a whole number, not 'x'",
        ),
        (
            "timeline.windows.0.steps.1",
            [1.0],
            "timeline.windows[0].steps[1] must be a list of 2 values or more, not [1.0]",
        ),
        ("timeline.windows.0.lanes.0.spans.0.3", 99, "timeline has a span at site 99, but only 3 sites"),
        ("what_if.order.0.together", None, "what_if.order[0].together must be a number, not None"),
        ("memory.3", [1.0, "x", None], "memory[3][1] must be a number, not 'x'"),
        ("sources.0.lines", "text", "sources[0].lines must be a list, not 'text'"),
        ("device", "y" * 99, "device must be an object, not 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy..."),
    ],
)
def test_damage_is_one_line_with_its_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(Damaged) as caught:
        Record.from_json(damaged(path, value))
    assert str(caught.value) == message


def test_what_is_missing_is_named() -> None:
    data = damaged("steps", 1)
    del data["findings"][0]["kind"]
    with pytest.raises(Damaged, match=r"^findings\[0\]\.kind is missing$"):
        Record.from_json(data)
    with pytest.raises(Damaged, match=r"^it must be an object, not 3$"):
        read(Record, 3)


def test_a_site_that_is_not_known_has_no_columns() -> None:
    row = TraceRow(function="step", traces=2, seconds=0.1)
    assert plain(row).keys() == {"function", "traces", "retraces", "objects", "seconds", "changes"}
    assert row.where == ""
    assert read(TraceRow, plain(row)) == row


def test_sections_a_record_lacks_are_empty() -> None:
    assert read(Tables, {}) == Tables()
    assert Tables().stepping_phase is None
    assert Tables().sums.graph_ns == 0
    assert read(Timeline, {"windows": []}).sites == []


def test_columns_a_later_stoker_appends_are_left_out() -> None:
    assert Record.from_json(damaged("memory.0", [0.0, 1, 2, 3])).memory[0] == (0.0, 1, 2)
