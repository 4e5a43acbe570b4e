"""`stoker.Watch` in real Keras loops: the ledger, findings once each, scalars, and nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker.errors import UsageError
from tests.support import run_plain, wait_until, write_program

tf = pytest.importorskip("tensorflow")
keras: Any = pytest.importorskip("keras")
np = pytest.importorskip("numpy")

X = np.random.RandomState(0).rand(512, 8).astype("float32")
Y = X.sum(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def model() -> Any:
    made = keras.Sequential([keras.Input([8]), keras.layers.Dense(4), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


class Reader(keras.callbacks.Callback):
    """Reads so often that it is a finding."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        for _ in range(20):
            float(tf.reduce_sum(self.model.layers[0].kernel))


def test_the_ledger_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    watch = stoker.Watch()
    model().fit(X, Y, batch_size=8, epochs=2, verbose=0, callbacks=[watch], validation_data=(X[:64], Y[:64]))
    record = watch.record
    assert record is not None
    assert record.steps == 128
    assert sum(record.accounts.values()) == pytest.approx(record.wall_s, rel=0.01)
    assert record.notes == []
    told = capsys.readouterr().err.replace("\xa0", " ")
    assert told.count("128 steps") == 1
    assert (Path(".stoker") / "runs" / f"{record.id}.json").exists()


@pytest.mark.slow
def test_the_few_ops_of_keras_loop_are_no_finding_beside_its_calls() -> None:
    watch = stoker.Watch(show=False)
    model().fit(X, Y, batch_size=1, epochs=4, verbose=0, callbacks=[watch])
    assert watch.record is not None
    found = [finding for finding in watch.record.findings if finding.kind == "launch-bound"]
    assert [finding.detail for finding in found if "ops" in finding.detail] == []
    (call,) = [finding for finding in found if "call_us" in finding.detail]
    assert call.count == 4 * len(X)


@pytest.mark.slow
def test_a_watch_blames_the_program_and_never_itself() -> None:
    watch = stoker.Watch(show=False)
    for _ in range(2):
        model().fit(X, Y, batch_size=1, epochs=3, verbose=0, callbacks=[watch])
        assert watch.record is not None
        assert watch.record.findings
        assert {Path(finding.file).name for finding in watch.record.findings} == {Path(__file__).name}


WATCHED = """
import hashlib, json, sys
import keras, numpy as np, stoker

X = np.random.RandomState(0).rand(512, 8).astype("float32")
Y = X.sum(axis=1, keepdims=True)
keras.utils.set_random_seed(7)
made = keras.Sequential([keras.Input([8]), keras.layers.Dropout(0.3), keras.layers.Dense(1)])
made.compile("adam", "mse", run_eagerly=True)
watch = stoker.Watch(experiments=sys.argv[1])
made.fit(X, Y, batch_size=8, verbose=0, callbacks=[watch])
bases = {finding.what_if.basis for finding in watch.record.findings if finding.what_if is not None}
timed = [row.kind for row in watch.record.tables.experiments if row.repaired_s]
made.fit(X, Y, batch_size=8, verbose=0)
state = b"".join(weight.numpy().tobytes() for weight in [*made.weights, *made.optimizer.variables])
print(json.dumps(["measured" in bases, bool(timed), hashlib.sha256(state).hexdigest()]))
"""


@pytest.mark.slow
def test_repairs_are_timed_when_the_loop_has_ended_and_the_model_notices_nothing(tmp_path: Path) -> None:
    write_program(tmp_path, WATCHED)
    timing, weights = "timing the repairs for about 300 s", set()
    for experiments, expected in (("300s", True), ("off", False)):
        outcome = run_plain(tmp_path, "train.py", experiments)
        assert outcome.code == 0, outcome.stderr
        measured, timed, digest = json.loads(outcome.stdout)
        assert (measured, timed, timing in outcome.stderr) == (expected, expected, expected), outcome.stderr
        weights.add(digest)
    assert len(weights) == 1
    with pytest.raises(UsageError, match="'soon' is not a time: use 60s, 2m, or off"):
        stoker.Watch(experiments="soon")


def test_a_record_that_cannot_be_kept_is_told_and_the_loop_goes_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path(".stoker").touch()
    watch = stoker.Watch()
    model().fit(X, Y, batch_size=8, verbose=0, callbacks=[watch])
    assert watch.record is not None
    assert watch.record.steps == 64
    assert "stoker: could not save the record: cannot write to .stoker/runs" in capsys.readouterr().err


@pytest.mark.slow
def test_findings_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    watch = stoker.Watch()
    model().fit(X, Y, batch_size=8, epochs=3, verbose=0, callbacks=[watch, Reader()])
    assert watch.record is not None
    kinds = {finding.kind for finding in watch.record.findings}
    assert "sync-in-loop" in kinds
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("stoker: ")]
    assert sum("sync-in-loop" in line for line in told) == 1


@pytest.mark.parametrize("loop", ["evaluate", "predict"])
def test_evaluate_and_predict(loop: str, capsys: pytest.CaptureFixture[str]) -> None:
    watch = stoker.Watch(show=False)
    arguments = (X, Y) if loop == "evaluate" else (X,)
    getattr(model(), loop)(*arguments, batch_size=8, verbose=0, callbacks=[watch])
    assert watch.record is not None
    assert watch.record.steps == 64
    assert watch.record.program.endswith(loop)
    assert "stoker" not in capsys.readouterr().err


def test_scalars_for_tensorboard(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    watch = stoker.Watch(show=False, log_dir=str(tmp_path / "logs"))
    model().fit(X, Y, batch_size=8, epochs=3, verbose=0, callbacks=[watch])
    events = accumulator.EventAccumulator(str(tmp_path / "logs"), size_guidance={"tensors": 0})
    events.Reload()
    names = set(events.Tags()["tensors"])
    assert {"stoker/steps_per_s", "stoker/seconds/compute", "stoker/seconds/sync"} <= names
    steps = [event.step for event in events.Tensors("stoker/steps_per_s")]
    assert steps[:3] == [64, 128, 192]


def test_the_same_watch_again_and_after_a_failure() -> None:
    from tensorflow.python.framework import ops

    class Trouble(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise ValueError("in the middle")

    before = dict(vars(ops.EagerTensor))
    watch, made = stoker.Watch(show=False), model()
    with pytest.raises(ValueError, match="in the middle"):
        made.fit(X, Y, batch_size=8, verbose=0, callbacks=[watch, Trouble()])
    wait_until(lambda: dict(vars(ops.EagerTensor)) == before)
    made.fit(X, Y, batch_size=8, verbose=0, callbacks=[watch])
    assert watch.record is not None
    assert watch.record.steps == 64
    assert dict(vars(ops.EagerTensor)) == before
