"""`stoker run --keep-step`, then `stoker price` in a process of its own."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.doctor.measure import repricing
from stoker.errors import RecordError
from stoker.tracking.store import record_files
from tests.samples import sample_record
from tests.support import run, write_program

pytest.importorskip("tensorflow")

EAGER = """
import tensorflow as tf
tf.keras.utils.set_random_seed(7)
model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)
x, y = tf.random.normal([32, 20]), tf.random.normal([32, 1])

def train_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

for step in range(60):
    train_step()
"""


@pytest.mark.slow
def test_a_step_that_was_kept_is_timed_in_another_process_and_the_record_gets_the_price(
    tmp_path: Path,
) -> None:
    write_program(tmp_path, EAGER)
    command = [sys.executable, "-m", "stoker"]
    outcome = run([*command, "run", "--experiments", "off", "--keep-step", "train.py"], tmp_path)
    assert outcome.code == 0
    assert "no step was kept" not in outcome.stderr
    (path,) = (tmp_path / ".stoker" / "runs").glob("*.json")
    before = record_files.read(path)
    assert before.findings[0].what_if is not None
    assert before.findings[0].what_if.basis == "modelled"
    # It must not be asked again: the step is all there is.
    (tmp_path / "train.py").unlink()
    priced = run([*command, "price", "latest", "--experiments", "300s", "--json"], tmp_path)
    assert priced.code == 0, priced.stderr
    assert "timing the repairs for about 300 s" in priced.stderr
    assert "was not timed" not in priced.stderr
    answer = json.loads(priced.stdout)
    after = record_files.read(path)
    price = after.findings[0].what_if
    assert price is not None
    assert price.basis == answer["rows"][0]["basis"] == "measured"
    assert price.speedup == answer["rows"][0]["speedup"]
    assert [row.failed for row in after.tables.experiments] == [""]
    assert dataclasses.replace(after, findings=[], what_if=None, tables=before.tables) == dataclasses.replace(
        before, findings=[], what_if=None
    )


def test_what_cannot_be_timed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    record = sample_record()
    path = record_files.path_of(record.id)
    path.parent.mkdir(parents=True)
    record_files.write(record, path)
    assert main(["price"]) == 2
    assert "kept no step: run it again with `stoker run --keep-step`" in capsys.readouterr().err
    assert main(["price", "--experiments", "off"]) == 2
    assert "`stoker whatif` prices the run as it is saved" in capsys.readouterr().err
    record_files.steps_path_of(path).touch()
    assert main(["price"]) == 2
    assert "was on another machine" in capsys.readouterr().err
    monkeypatch.setattr(repricing, "cpu_name", lambda: record.device.name)
    monkeypatch.setattr(repricing, "usable_cores", lambda: 0)
    old = dataclasses.replace(record, versions={"tensorflow": "2.1.0"})
    with pytest.raises(RecordError, match=r"was with TensorFlow 2\.1\.0"):
        repricing.price_again(old, path, None, lambda seconds: None)
