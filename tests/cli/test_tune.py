"""`stoker tune`: a pipeline measured, and what could be had."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.doctor.report import tuning
from stoker.records import Record
from tests.support import last_record, run, run_stoker, write_program

pytestmark = pytest.mark.tensorflow
_RUNS = 5

PIPELINE = """
import tensorflow as tf

def scaled(n):
    return tf.cast(n, tf.float32) / 7

def make_dataset():
    return tf.data.Dataset.range(2000).map(scaled).shuffle(10).batch(4)

ready = tf.data.Dataset.range(10).batch(2)
number = 3

def broken():
    raise ValueError("no such folder")
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "some_pipeline.py"
    path.write_text(PIPELINE)
    return path


@pytest.mark.slow
def test_it_shows_stages_and_changes(pipeline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", f"{pipeline}:make_dataset"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("The pipeline gives ")
    assert "map(scaled at some_pipeline.py:4)" in text
    assert "shuffle(10)" in text


def test_as_json(pipeline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", f"{pipeline}:ready", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["before"] > 0
    assert found["stages"]["inputs"][0]["stage"] == "range()"
    assert "diff" in found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{}", "does not name a pipeline"),
        ("nowhere.py:x", "there is no file nowhere.py"),
        ("{}:make_datset", "has no make_datset: did you mean 'make_dataset'?"),
        ("{}:number", "gives int, not a tf.data.Dataset"),
        ("{}:broken", "failed: ValueError: no such folder"),
        ("{}:scaled", "failed: TypeError"),
    ],
)
def test_bad_input_is_one_line(
    pipeline: Path, capsys: pytest.CaptureFixture[str], given: str, said: str
) -> None:
    assert main(["tune", given.format(pipeline)]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("stoker: ")
    assert said in error


def test_a_file_that_cannot_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wrong.py").write_text("def (")
    assert main(["tune", f"{tmp_path / 'wrong.py'}:x"]) == 2
    assert "wrong.py cannot be imported: SyntaxError" in capsys.readouterr().err


STARVED = """
import numpy as np, tensorflow as tf

rows = np.random.default_rng(0).normal(size=(1280, 64)).astype("float32")

def slow(row):
    for _ in range(60):
        row = tf.cumsum(tf.sort(row))
    return row

def make_dataset():
    return tf.data.Dataset.from_tensor_slices(rows).map(slow).batch(16).prefetch(2)

@tf.function
def step(batch):
    return tf.reduce_mean(batch)

for _ in range(3):
    for batch in make_dataset():
        last = step(batch)
print(last.numpy())
"""


def run_starved(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the starved program, and return its record and what the doctor found of its map.

    On a busy machine a step may wait for a processor rather than for its input, which is no finding: then run it again.
    """
    for _ in range(_RUNS):
        record = run_stoker(directory, "train.py").record
        assert record is not None
        for finding in record["findings"]:
            if finding["kind"] == "map-without-parallel-calls":
                return record, finding
    raise AssertionError(f"the map was not found in {_RUNS} runs")


@pytest.mark.slow
def test_the_doctor_and_the_tuner_tell_one_story(tmp_path: Path) -> None:
    write_program(tmp_path, STARVED)
    record, finding = run_starved(tmp_path)
    command = finding["detail"]["tuner"]["command"]
    assert command == "stoker tune train.py:make_dataset"
    # Whatever the tuner finds, also that it leaves the map alone, replaces the price that the doctor modelled.
    tuned = run([sys.executable, "-m", *command.split()], tmp_path)
    assert tuned.code == 0, tuned.stderr
    (line,) = [one for one in tuned.stdout.splitlines() if one.startswith("In the run")]
    assert f"In the run {record['id']}: " in line
    assert "without map-without-parallel-calls train.py:" in line
    left = last_record(tmp_path)
    assert left is not None
    saved = Record.from_json(left)
    (told,) = [one for one in saved.findings if one.kind == "map-without-parallel-calls"]
    assert told.what_if is not None
    assert told.detail["tuner"]["speedup"] == [told.what_if.low, told.what_if.high]
    assert [line] == tuning.prices(saved, [told])
