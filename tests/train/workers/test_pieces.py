"""What workers share, piece by piece, in one process."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.train.request import rate_factor
from stoker.train.workers import group
from stoker.train.workers.group import Group
from stoker.train.workers.leaving import JobLeft, Leaving, list_warnings
from stoker.train.workers.shares import divide_data, read_from_service
from stoker.train.workers.strategy import strategy
from stoker.train.workers.tracing import on_replica
from tests.support import run

pytestmark = pytest.mark.tensorflow


def test_packs_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "PACK_BYTES", 16)
    values = [
        tf.random.stateless_normal([3, 5], [1, 2]),
        tf.constant(7.0),
        tf.constant([1, 2, 3], tf.int64),
        tf.zeros([2, 0]),
    ]
    for before, after in zip(values, group.sum_over_replicas(values), strict=True):
        np.testing.assert_array_equal(before, after)
        assert before.dtype == after.dtype


def drawn(replica: int | None) -> Any:
    generator = keras.random.SeedGenerator(3)
    if replica is None:
        numbers = keras.random.uniform([8], seed=generator)
    else:
        with on_replica(tf.constant(replica)):
            numbers = keras.random.uniform([8], seed=generator)
    return np.array(numbers), generator.state.numpy()


def test_replicas_draw_other_numbers_and_stay_in_step() -> None:
    (alone, place), (first, at_first), (second, at_second) = drawn(None), drawn(0), drawn(1)
    np.testing.assert_array_equal(alone, first)
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(place, at_first)
    np.testing.assert_array_equal(place, at_second)
    assert drawn(None)[0].tolist() == alone.tolist(), "Keras is as it was"


PIPELINE = tf.data.Dataset.range(8).batch(4)


def second_of_two() -> Group:
    group = Group()
    group.rank, group.count = 1, 2
    return group


def test_rows_are_divided_without_loss() -> None:
    x = np.arange(10)
    parts = []
    for rank in (0, 1):
        group = second_of_two()
        group.rank = rank
        share = divide_data(x, None, None, 7, "rows", group)
        parts.append((share.x.tolist(), share.batch_size))
    assert parts == [([0, 2, 4, 6, 8], 3), ([1, 3, 5, 7, 9], 4)]


def test_a_pipeline_is_sliced_batch_by_batch() -> None:
    share = divide_data(tf.data.Dataset.range(7).batch(4), None, None, None, "rows", second_of_two())
    assert [batch.tolist() for batch in share.x.as_numpy_iterator()] == [[2, 3], [5, 6]]


@pytest.mark.parametrize(
    ("x", "divide", "said"),
    [
        (np.ones(4), "half", "divide='half' is not one of 'share', 'rows', 'files'"),
        (np.ones(4), "files", "divide='files' needs a tf.data.Dataset of files, not ndarray"),
        (iter([1]), "rows", "divide='rows' needs arrays or a tf.data.Dataset"),
        (tf.data.Dataset.range(8).batch(4), "files", "cannot be divided by its files"),
    ],
)
def test_what_cannot_be_divided_is_said_in_one_line(x: Any, divide: str, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        divide_data(x, None, None, 2, divide, second_of_two())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("x", "address", "checkpoint", "said"),
    [
        (PIPELINE, "somewhere", False, "data_service='somewhere': give the dispatcher's address"),
        (PIPELINE, 5050, False, "data_service=5050: give the dispatcher's address"),
        (np.ones(4), "grpc://127.0.0.1:1", False, "data_service= runs a tf.data.Dataset, not ndarray"),
        (PIPELINE, "grpc://127.0.0.1:1", True, "data_service= cannot be used with checkpoint="),
        (PIPELINE, "127.0.0.1:1", False, "data_service='grpc://127.0.0.1:1': no dispatcher answers there"),
    ],
)
def test_a_service_that_cannot_be_used_is_one_line(x: Any, address: Any, checkpoint: bool, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        read_from_service(x, None, None, address, Group(), checkpoint=checkpoint)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rates_are_scaled_only_if_asked_for() -> None:
    assert [rate_factor(asked, 4) for asked in (False, True, "linear", "sqrt")] == [1.0, 4.0, 4.0, 2.0]
    with pytest.raises(ArgumentError, match=r"scale_rate='twice': give True .* 'sqrt' or False"):
        rate_factor("twice", 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "is not what TensorFlow writes there"),
        (
            json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 3}}),
            "no task 3 of 'worker'",
        ),
    ],
)
def test_an_environment_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch, given: str, said: str) -> None:
    monkeypatch.setenv("TF_CONFIG", given)
    with pytest.raises(ArgumentError, match=said):
        strategy()


def test_workers_that_come_too_late_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    tf.constant(1.0)
    task = {"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(task))
    with pytest.raises(ArgumentError, match="called too late"):
        strategy()


@pytest.mark.parametrize("trained_by", ["fit", "Trainer"])
def test_a_worker_does_not_train_a_model_of_no_strategy(
    monkeypatch: pytest.MonkeyPatch, trained_by: str
) -> None:
    cluster = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}
    task = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(task))
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def train() -> None:
        if trained_by == "fit":
            stoker.fit(model, x, y, verbose=0)
            return
        trainer = stoker.Trainer(
            model, model.optimizer, lambda net, batch: tf.reduce_mean(net(batch[0]) ** 2)
        )
        trainer.fit(x, y, verbose=0)

    with pytest.raises(
        ArgumentError, match=r"this is worker 2 of 3, .* `with stoker\.strategy\(\)\.scope\(\):`"
    ):
        train()
    assert int(model.optimizer.iterations) == 0
    # What the message offers to those who want a model for each worker.
    monkeypatch.delenv("TF_CONFIG")
    train()
    assert int(model.optimizer.iterations) == 1


@pytest.mark.slow
def test_a_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        task = {"cluster": {"worker": [address, "127.0.0.1:2"]}, "task": {"type": "worker", "index": 0}}
        program = (
            f"import os; os.environ['TF_CONFIG'] = {json.dumps(task)!r}; import stoker; stoker.strategy()"
        )
        outcome = run([sys.executable, "-c", program], tmp_path)
    assert outcome.code == 1
    said = f"TF_CONFIG: this worker cannot listen on {address}: the port is in use by another process"
    assert outcome.stderr.splitlines()[-1].endswith(said)


def test_without_a_job_the_strategy_is_tensorflows_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert strategy() is tf.distribute.get_strategy()


def test_a_signal_is_a_wish_inside_and_what_it_was_outside() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Leaving(listen=True) as leaving:
        assert not leaving.asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert leaving.asked
        assert signal.getsignal(signal.SIGTERM) == before
    assert JobLeft().code == 75


def test_slurms_warning_and_the_launchers_are_one_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_warnings() == [signal.SIGTERM]
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    before = signal.getsignal(signal.SIGTERM)
    assert list_warnings() == [signal.SIGTERM, signal.SIGUSR1]
    with Leaving(*list_warnings(), listen=True) as leaving:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert leaving.asked
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
        # The launcher passes on what it got itself.
        os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == before
    with Leaving(*list_warnings(), listen=True):
        os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.getsignal(signal.SIGTERM) == before
    try:
        signal.signal(signal.SIGUSR1, lambda *_: None)
        assert list_warnings() == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
