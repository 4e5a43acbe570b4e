"""`stoker whatif` as typed, on saved records."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.records import Record, TimelineSite, WindowSums
from stoker.tracking.store import record_files
from tests.doctor.pricing.test_simulation import recorded
from tests.samples import sample_finding, sample_record
from tests.support import Outcome, run


def whatif(directory: Path, *words: str) -> Outcome:
    """The command in this process: what it prints, and its exit code."""
    before = os.getcwd()
    os.chdir(directory)
    try:
        with _captured() as (out, err):
            code = main(["whatif", *words])
    finally:
        os.chdir(before)
    return Outcome(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


def saving_and_copying() -> Record:
    """Steps of 40 ms: 10 ms of kernels, 20 ms of checkpoint, 10 ms of copying."""
    marks = [[n * 0.040, (n + 1) * 0.040] for n in range(16)]
    host: list[list[Any]] = []
    for start, end in marks:
        host.append([start, start + 0.010, "graph", -1, "step", 0.0])
        host.append([start + 0.010, start + 0.030, "checkpoint", 0, "save", 0.0])
        host.append([start + 0.030, end, "transfer", 1, "ndarray", 0.0])
    accounts = {"graph": 1.0, "checkpoint": 2.0, "transfer": 1.0}
    record = recorded(host, marks, seconds=4.0, steps=100, accounts=accounts, gradient_bytes=8_000_000)
    assert record.timeline is not None
    record.timeline.sites.append(TimelineSite("data/feed.py", 7, "feed"))
    windows = WindowSums(graph_ns=100, graph_busy_ns=100, graph_quick_ns=100)
    found = [
        sample_finding(kind="checkpoint-in-loop", code="STK506", what_if=None),
        sample_finding(kind="numpy-feed-in-loop", code="STK102", file="data/feed.py", line=7, what_if=None),
    ]
    tables = dataclasses.replace(record.tables, windows=[windows])
    return dataclasses.replace(record, findings=found, tables=tables, steps_per_s=25.0, examples_per_s=800.0)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "140")
    runs = tmp_path / ".stoker" / "runs"
    runs.mkdir(parents=True)
    record = saving_and_copying()
    record_files.write(record, runs / f"{record.id}.json")
    return tmp_path


def answer(directory: Path, *words: str) -> dict[str, Any]:
    outcome = whatif(directory, "--json", *words)
    assert outcome.code == 0, outcome.stderr
    data: dict[str, Any] = json.loads(outcome.stdout)
    return data


def test_as_typed(directory: Path) -> None:
    outcome = run([sys.executable, "-m", "stoker", "whatif", "--without", "all"], directory)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "4.4x" in outcome.stdout


def test_every_finding_in_the_order_of_repair_and_all(directory: Path) -> None:
    outcome = whatif(directory)
    assert outcome.code == 0
    text = " ".join(outcome.stdout.split())
    # Each price with its bounds, of which the upper one is what Amdahl's law leaves.
    assert re.search(r"1\. without checkpoint-in-loop train\.py:42 2\.0x \(1\.\d+-2\.\d\) measured", text)
    assert re.search(r"2\. without numpy-feed-in-loop data/feed\.py:7 1\.4x \(1\.\d+-1\.\d\) modelled", text)
    assert re.search(r"all of them 4\.4x \(\d\.\d-\d\.\d\)", text)
    assert "A modelled price replays the recorded steps." in text
    assert "every 50 steps" in text


@pytest.mark.parametrize("what", ["checkpoint-in-loop", "STK506", "train.py:42"])
def test_without_one(directory: Path, what: str) -> None:
    (row,) = answer(directory, "--without", what)["rows"]
    # The run has timed the saves: of the half of a step that they take, one in fifty stays, and nothing is assumed.
    assert row["speedup"] == pytest.approx(0.040 / 0.0204, rel=1e-3)
    assert row["steps_per_s"] == pytest.approx(25 * row["speedup"], rel=1e-3)


def test_without_several(directory: Path) -> None:
    words = ("--without", "feed.py:7", "--without", "checkpoint-in-loop")
    (row,) = answer(directory, *words)["rows"]
    assert row["speedup"] > 0.040 / 0.0104
    assert row == {**answer(directory, "--without", "all")["rows"][0], "what": row["what"]}


def test_a_larger_batch_pays_the_checkpoint_less_often(directory: Path) -> None:
    """40 ms of kernels and of copies each and 20 ms of checkpoint, for four times the examples."""
    (row,) = answer(directory, "--batch", "4x")["rows"]
    assert row["speedup"] == pytest.approx(4 * 0.040 / 0.100, rel=1e-3)
    assert row["examples_per_s"] == pytest.approx(1280, rel=1e-2)
    assert row["steps_per_s"] == pytest.approx(10, rel=1e-2)


def test_replicas_exchange_their_gradients(directory: Path) -> None:
    """8 MB, nearly twice around at 1 GB/s: 14 ms a step, and 14 messages of 50 microseconds."""
    data = answer(directory, "--workers", "8", "--bandwidth", "1")
    assert data["rows"][0]["speedup"] == pytest.approx(8 * 0.040 / (0.040 + 0.014 + 0.0007), rel=1e-2)
    assert any("8.0 MB of gradients at 1 GB/s" in line for line in data["assumptions"])
    slow = answer(directory, "--workers", "8", "--bandwidth", "1", "--latency", "1ms")
    assert slow["rows"][0]["speedup"] == pytest.approx(8 * 0.040 / (0.040 + 0.014 + 0.014), rel=1e-2)
    assert any("1000 us a message" in line for line in slow["assumptions"])


def test_another_device_leaves_what_the_host_does(directory: Path) -> None:
    data = answer(directory, "--device-profile", "a100")
    assert data["rows"][0]["speedup"] == pytest.approx(0.040 / 0.030, rel=0.01)
    assert any("on a100 kernels are quicker" in line for line in data["assumptions"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--without", "sink-in-loop"], "no kind 'sink-in-loop': it found checkpoint-in-loop at train.py:42"),
        (["--without", "sync-in-loop"], "the run has no sync-in-loop: it found checkpoint-in-loop"),
        (["--without", "train.py:43"], "the run has no train.py:43: it found"),
        (["--device-profile", "b200"], "no device profile 'b200': choose one of a100"),
        (["--batch", "4"], "--batch '4': give a factor such as 4x"),
        (["--batch", "0x"], "--batch '0x': give a factor such as 4x"),
        (["--workers", "two"], "--workers 'two': give a whole number such as 8"),
        (["--workers", "2", "--bandwidth", "-1"], "--bandwidth"),
        (["--workers", "2", "--latency", "soon"], "--latency 'soon': give a time such as 30s or 4h"),
        (["nothere"], "no run with id 'nothere'"),
    ],
)
def test_bad_input_is_one_line(directory: Path, words: list[str], said: str) -> None:
    outcome = whatif(directory, *words)
    assert outcome.code == 2
    assert outcome.stdout == ""
    assert said in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_an_older_record_has_nothing_to_replay(tmp_path: Path) -> None:
    """A record as Stoker wrote it before it kept spans."""
    data = sample_record().to_json()
    for name in ("step_times", "timeline", "what_if"):
        del data[name]
    (tmp_path / "old.json").write_text(json.dumps(data))
    outcome = whatif(tmp_path, "old.json")
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("stoker: the run 20261115-210754-3fa9 has no spans to replay")
    assert len(outcome.stderr.splitlines()) == 1


def test_a_damaged_timeline_is_one_clear_line(directory: Path) -> None:
    broken = {**saving_and_copying().to_json(), "timeline": {"windows": [{"steps": 3}]}}
    (directory / ".stoker" / "runs" / "broken.json").write_text(json.dumps(broken))
    done = whatif(directory, "broken")
    assert done.code == 2
    assert "broken.json is damaged (timeline.windows[0].start_s is missing)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_large_job(directory: Path) -> None:
    outcome = whatif(directory, "--workers", "256", "--mtbf", "4h", "--json")
    jobs = json.loads(outcome.stdout)["jobs"]
    assert [job["workers"] for job in jobs] == [8, 64, 256, 1024]
    assert all(0 < job["efficiency"] < 1 for job in jobs)
    shown = whatif(directory, "--workers", "256", "--mtbf", "4h")
    assert "a job of 256 workers fails every 4 h" in shown.stdout
    assert (shown.code, shown.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--mtbf", "4h"],
            "--mtbf needs --workers, such as --workers 1024 --mtbf 4h",
        ),
        (["--workers", "8", "--mtbf", "often"], "--mtbf 'often': give a time such as 30s or 4h"),
        (
            ["--workers", "8", "--mtbf", "4h", "--restart-cost", "0"],
            "--restart-cost '0': give a time such as 30s or 4h",
        ),
    ],
)
def test_a_large_job_that_makes_no_sense_is_one_line(directory: Path, words: list[str], said: str) -> None:
    outcome = whatif(directory, *words)
    assert (outcome.code, outcome.stderr) == (2, f"stoker: {said}\n")
