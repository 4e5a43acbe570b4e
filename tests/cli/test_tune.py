"""`stoker tune`: a pipeline measured, and what could be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.cli import main

pytestmark = pytest.mark.tensorflow

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
