"""The trace file: valid, ordered, ours and TensorFlow's side by side."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.doctor.report.trace import trace
from stoker.records import ProfilerWindow
from stoker.tracking.store import record_files
from tests.doctor.report.page.pages import full_record
from tests.samples import sample_record

WINDOW = ProfilerWindow.from_json(
    {
        "start_s": 3.0,
        "length_s": 0.2,
        "threads": {
            "/host:CPU python": [[8100.0, 1800.0, "TFE_Py_ExecuteCancelable"]],
            "/host:CPU tf_Compute/1": [[8200.0, 500.0, "MatMul"], [8200.0, 900.0, "ExecutorState::Process"]],
        },
    }
)


def check(events: list[dict[str, Any]]) -> None:
    """What the Trace Event Format asks for."""
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    last = float("-inf")
    for event in events:
        assert event["ph"] in ("X", "C", "M")
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        assert event["ts"] >= 0
        if event["ph"] == "M":
            assert isinstance(event["args"], dict)
            continue
        assert event["ts"] >= last
        last = event["ts"]
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert (event["pid"], event["tid"]) in named


def test_the_trace_is_valid_and_has_both() -> None:
    made = trace(full_record(), [WINDOW])
    events = made["traceEvents"]
    check(events)
    assert {event["pid"] for event in events if event["ph"] == "X"} == {1, 2}
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"steps", "host", "input", "device", "/host:CPU python"} <= names
    read = next(event for event in events if event.get("cat") == "sync")
    assert read["args"] == {"line": "train.py:42"}
    assert json.loads(json.dumps(made)) == made


def test_of_two_that_start_together_the_longer_comes_first() -> None:
    theirs = [e["name"] for e in trace(sample_record(), [WINDOW])["traceEvents"] if e["ph"] == "X"]
    assert theirs == ["TFE_Py_ExecuteCancelable", "ExecutorState::Process", "MatMul"]


def test_events_are_kept_beside_a_record_and_survive_a_killed_program(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    assert record_files.read_events(path) == []
    record_files.append_events([WINDOW], path)
    record_files.append_events([WINDOW, WINDOW], path)
    assert record_files.read_events(path) == [WINDOW] * 3
    whole = record_files.events_path_of(path).read_bytes()
    record_files.events_path_of(path).write_bytes(whole[:-20])
    assert record_files.read_events(path)[:1] == [WINDOW]
    assert record_files.ids(tmp_path) == []


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    record_files.write(full_record(), Path("run.json"))
    record_files.write(sample_record(), Path("old.json"))
    record_files.append_events([WINDOW], Path("run.json"))
    assert main(["report", "run.json", "--trace", "out.json"]) == 0
    check(json.loads(Path("out.json").read_text(encoding="utf-8"))["traceEvents"])
    assert main(["report", "old.json", "--trace", "none.json"]) == 2
    assert main(["report", "run.json", "--trace", "no/such/place.json"]) == 2
    said = capsys.readouterr().err
    assert "no recorded windows" in said
    assert "cannot write" in said


def test_a_damaged_window_ends_the_events(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    record_files.append_events([WINDOW], path)
    with record_files.events_path_of(path).open("ab") as file:
        file.write(gzip.compress(b'{"start_s": "soon", "length_s": 1.0, "threads": {}}\n'))
    record_files.append_events([WINDOW], path)
    assert record_files.read_events(path) == [WINDOW]
