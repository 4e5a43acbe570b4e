"""`stoker launch --ledger`: two real workers that exchange too often and read all of the data; one of them is slow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stoker.cli._launch.ledger import find_unscaled_batches
from stoker.doctor.measure.launch import Target
from tests.launch.support import launch_command
from tests.support import run, write_program

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import os, time
import tensorflow as tf

rank = int(os.environ["STOKER_RANK"])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = [tf.Variable(tf.ones([64, 64]) * 0.01) for _ in range(3)]
dataset = tf.data.Dataset.from_tensor_slices(tf.ones([2048, 64])).repeat().batch(32)

@tf.function
def step(batch):
    def replica(x):
        with tf.GradientTape() as tape:
            for weight in weights:
                x = tf.tanh(x @ weight)
            loss = tf.reduce_mean(x)
        gradients = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        for weight, gradient in zip(weights, gradients):
            weight.assign_sub(0.01 * context.all_reduce("SUM", gradient))
        return loss

    return strategy.run(replica, args=(batch,))

for batch in dataset.take(60):
    step(batch)
    if rank == 1:
        time.sleep(0.15)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory that the job ran in, and what it printed."""
    directory = tmp_path_factory.mktemp("job")
    write_program(directory, PROGRAM)
    outcome = run(launch_command("-n", "2", "--ledger", "train.py"), directory)
    assert outcome.code == 0, outcome.stderr
    return directory, outcome.stderr


def record(directory: Path, which: str) -> dict[str, Any]:
    (path,) = (directory / ".stoker" / "runs").glob(f"*-{which}.json")
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def found(data: dict[str, Any], kind: str) -> dict[str, Any]:
    (finding,) = [finding for finding in data["findings"] if finding["kind"] == kind]
    return dict(finding)


@pytest.mark.slow
def test_every_worker_and_the_job_leave_a_record(job: tuple[Path, str]) -> None:
    directory, _ = job
    for which in ("0", "1", "job"):
        data = record(directory, which)
        assert data["steps"] == 60
        assert data["accounts"]["communication"] > 0
        assert sum(data["accounts"].values()) == pytest.approx(data["wall_s"], rel=0.01)
    rows = record(directory, "job")["tables"]["workers"]
    assert [row["rank"] for row in rows] == [0, 1]
    assert [row["run"] for row in rows] == [record(directory, which)["id"] for which in ("0", "1")]


def test_a_worker_never_uses_the_profiler(job: tuple[Path, str]) -> None:
    # It can crash a program that exchanges with others: `stoker.doctor.probes.exchange_meter` says how.
    sums = [record(job[0], which)["tables"]["windows"] for which in ("0", "1")]
    assert [(row["windows"], row["graph_calls"] > 0) for (row,) in sums] == [(0, True)] * 2
    assert not list((job[0] / ".stoker" / "runs").glob("*.events*"))


def test_the_slow_worker_is_named(job: tuple[Path, str]) -> None:
    directory, shown = job
    data = record(directory, "job")
    straggler = found(data, "straggler")
    assert (straggler["detail"]["worker"], straggler["detail"]["account"]) == (1, "python")
    waiting, last = data["tables"]["workers"]
    assert waiting["waiting_s"] > last["waiting_s"] == 0
    assert waiting["exchange_s"] == pytest.approx(last["exchange_s"])
    assert "waiting for peers" in shown


def test_exchanging_for_every_weight_is_found(job: tuple[Path, str]) -> None:
    finding = found(record(job[0], "job"), "many-small-collectives")
    assert finding["detail"]["collectives"] == 3
    assert finding["bytes"] == 3 * 64 * 64 * 4
    assert finding["detail"]["workers"] == [0, 1]
    assert finding["function"] == "step"


def test_reading_all_of_the_data_is_found(job: tuple[Path, str]) -> None:
    finding = found(record(job[0], "job"), "unsharded-input")
    assert finding["source"].startswith("dataset = tf.data.Dataset.from_tensor_slices")


FITTED = """
import keras
import numpy as np
import stoker

x, y = np.ones([2048, 8], "float32"), np.ones([2048, 1], "float32")
with stoker.strategy().scope():
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
stoker.fit(model, x, y, epochs=3, batch_size=32, validation_split=0.1, verbose=0)
"""


def test_the_trainers_own_exchanges_are_no_finding(tmp_path: Path) -> None:
    """Nobody can exchange less often from the line that calls `stoker.fit`."""
    write_program(tmp_path, FITTED)
    outcome = run(launch_command("-n", "2", "--ledger", "train.py"), tmp_path)
    assert outcome.code == 0, outcome.stderr
    data = record(tmp_path, "job")
    assert data["accounts"]["communication"] > 0
    assert "many-small-collectives" not in [finding["kind"] for finding in data["findings"]]


def test_a_batch_that_was_not_scaled_is_read_from_the_source(tmp_path: Path) -> None:
    scope = "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    rows = "rows = tf.data.TFRecordDataset(files).shuffle(1000).batch(64)\n"
    path = write_program(tmp_path, f"{scope}{rows}rows = strategy.experimental_distribute_dataset(rows)\n")
    (finding,) = find_unscaled_batches(Target(str(path), []))
    assert (finding.kind, finding.line, finding.evidence) == ("unscaled-batch", 3, "static")
