"""What trains, evaluates and watches leaves runs in the store, and reads nothing for that."""

from __future__ import annotations

import hashlib
import math
import runpy
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import stoker
from stoker.tracking.store import address, queries
from stoker.tracking.store.queries import Reader
from stoker.tracking.store.verifying import verify
from tests.support import ROOT
from tests.tracking.store.conftest import flush

open_stores = ExitStack()


@pytest.fixture(autouse=True)
def _kept_here(own_writers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store in the test's own directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STOKER_STORE")
    yield
    open_stores.close()


@pytest.fixture
def model() -> Any:
    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)], name="line")
    made.compile(keras.optimizers.SGD(0.01), "mse")
    return made


@pytest.fixture
def data() -> tuple[Any, Any]:
    x = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
    return x, x.sum(axis=1, keepdims=True)


def read() -> Reader:
    """The store, opened until the test ends."""
    flush()
    return open_stores.enter_context(queries.open_reader(address.require()))


def test_fit_keeps_what_it_did(model: Any, data: tuple[Any, Any]) -> None:
    history = stoker.fit(model, *data, batch_size=16, epochs=3, validation_split=0.25, verbose=0)
    reader = read()
    (row,) = reader.runs()
    assert row.id == history.run
    assert (row.state, row.kind, row.name) == ("finished", "train", "line")
    wanted = {"epochs": 3, "batch_size": 16, "steps_per_epoch": 3, "optimizer": "SGD", "model": "line"}
    assert wanted.items() <= row.parameters.items()
    assert math.isclose(row.parameters["learning_rate"], 0.01, rel_tol=1e-6)
    assert row.steps == 9
    assert (row.steps_per_s or 0) > 0
    assert [value for _, _, value in reader.points(row.id, "val_loss")] == history.history["val_loss"]
    losses = reader.points(row.id, "loss")
    assert [value for step, _, value in losses if step % 3 == 0] == history.history["loss"]
    assert len({step for step, _, _ in losses}) == len(losses)
    assert reader.points(row.id, "epoch")[-1][0] == 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "name", "shown"),
    [
        ("/work/train.py", None, "train.py"),
        ("/work/train.py", "line", "line"),
        ("/env/bin/stoker", None, "sequential"),
        ("/env/ipykernel_launcher.py", None, "sequential"),
    ],
)
def test_a_run_is_named_after_its_program_or_by_the_user(
    data: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, program: str, name: str | None, shown: str
) -> None:
    keras.backend.clear_session()
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)], name=name)
    made.compile("sgd", "mse")
    monkeypatch.setattr(sys, "argv", [program, "--epochs", "1"])
    stoker.fit(made, *data, verbose=0)
    (row,) = read().runs()
    assert (row.name, row.parameters["model"]) == (shown, name or "sequential")


def test_fit_links_its_data_by_content(model: Any, data: tuple[Any, Any]) -> None:
    first = stoker.fit(model, *data, verbose=0).run
    again = stoker.fit(model, data[0].copy(), data[1], verbose=0).run
    data[0][3, 1] += 1
    other = stoker.fit(model, *data, verbose=0).run
    reader = read()
    found = {run: reader.artifacts(run) for run in (first, again, other)}
    hashes = {run: [one.hash for one in artifacts] for run, artifacts in found.items()}
    assert hashes[first] == hashes[again] != hashes[other]
    assert all(one.hash.startswith("sha256:") for one in found[first])
    assert [(one.relation, one.kind, one.size) for one in found[first]] == [("uses", "data", 64 * 5 * 4)]


def test_a_pipeline_is_known_by_its_sources(model: Any, data: tuple[Any, Any]) -> None:
    def hashed() -> str:
        run = stoker.fit(model, tf.data.Dataset.from_tensor_slices(data).batch(16), verbose=0).run
        (artifact,) = read().artifacts(run)
        return str(artifact.hash)

    first = hashed()
    assert first.startswith("sources:")
    assert hashed() == first
    data[0][3, 1] += 1
    assert hashed() != first


def test_a_training_that_fails_says_so(model: Any, data: tuple[Any, Any]) -> None:
    class Failing(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        stoker.fit(model, *data, verbose=0, callbacks=[Failing()])
    (row,) = read().runs()
    assert (row.state, row.error) == ("failed", "RuntimeError: enough")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_training_that_saves_and_leaves_its_job_is_interrupted(
    number: signal.Signals,
    model: Any,
    data: tuple[Any, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Leaving(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            signal.raise_signal(number)

    monkeypatch.setenv("STOKER_JOB", "job")
    # Whoever started the tests in the background had SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as caught:
            stoker.fit(
                model, *data, epochs=3, verbose=0, callbacks=[Leaving()], checkpoint=tmp_path / "saved"
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.code == 75
    (row,) = read().runs()
    assert (row.state, row.error) == ("interrupted", None)


def test_what_trains_inside_a_tracked_run_is_its_child(
    model: Any, data: tuple[Any, Any], tmp_path: Path
) -> None:
    with stoker.track("study", params={"size": 2}) as run:
        stoker.fit(model, *data, verbose=0)
        stoker.evaluate(model, *data, verbose=0)
        stoker.predict(model, data[0], verbose=0)
        stoker.predict(model, data[0], verbose=0, track=True)
        model.save(tmp_path / "line.keras")
        digest = run.artifact(tmp_path / "line.keras", kind="model")
    reader = read()
    rows = {row.kind: row for row in reader.runs()}
    assert sorted(rows) == ["evaluate", "predict", "track", "train"]
    assert {row.parent for kind, row in rows.items() if kind != "track"} == {run.id}
    assert digest == "sha256:" + hashlib.sha256((tmp_path / "line.keras").read_bytes()).hexdigest()
    (made,) = reader.artifacts(run.id)
    assert (made.relation, made.kind, made.hash) == ("makes", "model", digest)
    assert rows["evaluate"].series["loss"].count == 1


def test_a_trainer_keeps_its_runs_and_what_went_wrong(model: Any, data: tuple[Any, Any]) -> None:
    def step(model: Any, batch: Any, training: bool) -> Any:
        x, y = batch
        return tf.reduce_mean((model(x, training=training) - y) ** 2)

    trainer = stoker.Trainer(model, model.optimizer, step)
    bad = data[0].copy()
    bad[40] = np.nan
    trainer.fit(bad, data[1], batch_size=16, shuffle=False, verbose=0)
    trainer.evaluate(*data)
    reader = read()
    rows = {row.kind: row for row in reader.runs()}
    assert rows["evaluate"].series["loss"].count == 1
    ((at, _, value),) = reader.points(rows["train"].id, "event/stop")
    assert at == 2
    assert math.isnan(value)


def test_log_keeps_what_keras_reports(model: Any, data: tuple[Any, Any]) -> None:
    history = model.fit(
        *data,
        batch_size=16,
        epochs=2,
        validation_data=data,
        verbose=0,
        callbacks=[stoker.Log("mine", params={"seed": 1})],
    )
    model.evaluate(*data, verbose=0, callbacks=[stoker.Log()])
    reader = read()
    rows = {row.kind: row for row in reader.runs()}
    train = rows["train"]
    assert (train.name, train.state, train.steps) == ("mine", "finished", 8)
    assert {"seed": 1, "epochs": 2, "steps": 4, "optimizer": "SGD"}.items() <= train.parameters.items()
    losses = reader.points(train.id, "loss")
    assert [step for step, _, _ in losses] == list(range(1, 9))
    assert [losses[3][2], losses[7][2]] == history.history["loss"]
    assert [(step, value) for step, _, value in reader.points(train.id, "val_loss")] == list(
        zip([4, 8], history.history["val_loss"], strict=True)
    )
    assert rows["evaluate"].series["loss"].count == 1


def test_log_under_fit_names_its_run(model: Any, data: tuple[Any, Any]) -> None:
    stoker.fit(model, *data, verbose=0, callbacks=[stoker.Log("mine", params={"seed": 1})])
    (row,) = read().runs()
    assert row.name == "mine"
    assert {"seed": 1, "optimizer": "SGD"}.items() <= row.parameters.items()


def test_a_watched_loop_has_its_ledger_in_both_places(model: Any, data: tuple[Any, Any]) -> None:
    watch = stoker.Watch(show=False)
    model.fit(*data, verbose=0, callbacks=[watch])
    assert watch.record is not None
    reader = read()
    (row,) = reader.runs()
    assert (row.id, row.kind) == (watch.record.id, "watch")
    assert reader.ledger(row.id) == watch.record.accounts
    assert [(f["kind"], f["line"]) for f in reader.findings(row.id)] == [
        (f.kind, f.line) for f in watch.record.findings
    ]
    assert row.steps == watch.record.steps


def test_runs_are_a_table(model: Any, data: tuple[Any, Any]) -> None:
    for rate in (0.01, 0.1):
        with stoker.track("study", params={"rate": rate}) as run:
            run.log(1, loss=1 - rate)
    flush()
    table = pd.DataFrame(stoker.runs(sort="loss"))
    assert list(table["metrics.loss"]) == [0.9, 0.99]
    assert list(table["params.rate"]) == [0.1, 0.01]
    assert [run["params.rate"] for run in stoker.runs("rate < 0.05")] == [0.01]


def test_the_example_keeps_a_study(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "store" / "study.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == "best rate: 0.1"
    assert verify(address.require()).problems == []


def test_with_the_store_off_nothing_is_kept(
    model: Any, data: tuple[Any, Any], monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("STOKER_STORE", "off")
    history = stoker.fit(model, *data, verbose=0)
    assert history.run == ""
    assert not list((tmp_path / ".stoker").glob("stoker.db*"))
