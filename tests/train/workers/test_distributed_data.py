"""Datasets that a strategy has distributed train, evaluate and predict as under Keras, on one and on two replicas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.train.preparing import check_swaps
from stoker.train.workers.group import Group
from stoker.train.workers.shares import check_distributed
from tests.support import HANGS_S

pytestmark = pytest.mark.tensorflow
PROGRAM = Path(__file__).with_name("distributed_data_program.py")
STEPS = 6  # two epochs of 24 rows in batches of 8


@pytest.fixture(scope="module")
def found(tmp_path_factory: Any) -> Any:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        cwd=tmp_path_factory.mktemp("distributed"),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "is not kept" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _close(mine: Any, theirs: Any) -> None:
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


CASES = ["not distributed, 1", "whole, 1", "function, 1", "whole, 2", "function, 2", "unknown length, 2"]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_training_gives_the_numbers_of_keras(found: Any, case: str) -> None:
    theirs, ours = found["fit"][case]
    assert list(ours["history"]) == list(theirs["history"])
    for name, values in theirs["history"].items():
        np.testing.assert_allclose(ours["history"][name], values, rtol=1e-5, err_msg=name)
    _close(ours["weights"], theirs["weights"])
    assert ours["steps"] == STEPS
    assert ours["told"] == theirs["told"]


@pytest.mark.parametrize("case", [case for case in CASES if case.endswith("1")])
def test_one_replica_gives_the_bits_of_keras(found: Any, case: str) -> None:
    theirs, ours = found["fit"][case]
    assert ours == theirs


def test_scores_and_predictions_are_those_of_keras(found: Any) -> None:
    theirs, ours = found["scored"]
    assert ours == theirs


def test_the_averages_of_an_optimizer_are_those_of_keras(found: Any) -> None:
    theirs, ours = found["averaged"]
    for name, values in theirs["history"].items():
        np.testing.assert_allclose(ours["history"][name], values, rtol=1e-5, err_msg=name)
    _close(ours["weights"], theirs["weights"])
    _close(ours["averages"], theirs["averages"])


def test_a_trainer_takes_rows_apart_as_it_takes_them_together(found: Any) -> None:
    apart, together = found["trainer"]["apart"], found["trainer"]["together"]
    _close(apart["weights"], together["weights"])
    np.testing.assert_allclose(apart["loss"], together["loss"], rtol=1e-5)


def test_what_cannot_be_done_is_said_in_one_line(found: Any) -> None:
    assert found["refused"]["replicas"] == (
        "x was distributed to 2 replicas, but the model has 1: make model and dataset under the same strategy"
    )
    for option in ("class_weight", "checkpoint"):
        assert found["refused"][option] == (
            f"{option}= cannot be used with a distributed dataset: pass the tf.data.Dataset itself, "
            "stoker divides its batches among the replicas"
        )


def test_what_a_job_of_several_workers_cannot_do_is_said_in_one_line() -> None:
    group = Group()
    group.count = 2
    data = tf.distribute.OneDeviceStrategy("/cpu:0").experimental_distribute_dataset(
        tf.data.Dataset.range(4).batch(2)
    )
    with pytest.raises(
        ArgumentError, match="x is a distributed dataset, which a job of 2 workers cannot train on"
    ):
        check_distributed(data, None, {}, group)
    with pytest.raises(ArgumentError, match="validation_data is a distributed dataset"):
        check_distributed(None, data, {}, group)
    with pytest.raises(ArgumentError, match="SwapEMAWeights swaps the weights of one worker alone"):
        check_swaps([keras.callbacks.SwapEMAWeights()])
    check_swaps(None)
