"""What `stoker run` measures of a Keras program is in the store, with the values that its `fit` reported."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker.records import EpochRow
from stoker.tracking.store import measured
from tests.samples import sample_record
from tests.support import run_stoker, write_program
from tests.tracking.store.conftest import flush

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import json, keras, numpy as np, stoker
x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
y = x.sum(1, keepdims=True)

def model():
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse", metrics=["mae"])
    return made

first = model().fit(x, y, batch_size=8, epochs=3, validation_data=(x, y), verbose=0).history
second = model().fit(x, y, batch_size=20, epochs=1, verbose=0).history
stoker.fit(model(), x, y, batch_size=8, verbose=0)
json.dump([first, second], open("history.json", "w"))
"""


@pytest.mark.slow
def test_the_values_of_a_keras_fit_are_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STOKER_STORE", raising=False)
    write_program(tmp_path, PROGRAM)
    outcome = run_stoker(tmp_path, "--quiet", "train.py")
    assert (outcome.code, outcome.record is not None) == (0, True), outcome.stderr
    assert outcome.record is not None
    first, second = json.loads((tmp_path / "history.json").read_text())
    epochs = outcome.record["tables"]["epochs"]
    assert [(row["epoch"], row["step"]) for row in epochs] == [(1, 5), (2, 10), (3, 15), (1, 17)]
    for name, values in first.items():
        assert [row["values"][name] for row in epochs[:3]] == values, name
    rows = {row["kind"]: row for row in stoker.runs(store=f"sqlite:///{tmp_path}/.stoker/stoker.db")}
    assert rows["run"]["metrics.loss"] == second["loss"][-1]
    assert rows["run"]["metrics.val_mae"] == first["val_mae"][-1]
    assert rows["train"]["parent"] == rows["run"]["id"], "stoker.fit keeps its values itself"


def test_a_record_that_is_read_again_logs_each_epoch_once(
    own_writers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STOKER_STORE", raising=False)
    record = sample_record()
    run = measured.begin(record.id, "train.py", [], "run")
    for count in (1, 2, 2):
        values: dict[str, float | None] = {"loss": 0.5, "other": None}
        rows = [EpochRow(epoch=one, step=5 * one, values=values) for one in range(1, count + 1)]
        tables = dataclasses.replace(record.tables, epochs=rows)
        measured.update(run, dataclasses.replace(record, tables=tables))
    measured.end(run, dataclasses.replace(record, tables=tables))
    flush()
    (row,) = stoker.runs()
    assert (row["metrics.loss"], row["metrics.epoch"]) == (0.5, 2.0)
    assert math.isnan(row["metrics.other"])
    # Not what timing the repairs took.
    assert row["seconds"] == record.wall_s


@pytest.mark.parametrize(
    ("code", "state"), [(0, "finished"), (1, "failed"), (75, "interrupted"), (130, "interrupted")]
)
def test_a_measured_program_that_was_asked_to_stop_is_interrupted(
    own_writers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, state: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STOKER_STORE", raising=False)
    record = dataclasses.replace(sample_record(), exit_code=code)
    measured.end(measured.begin(record.id, "train.py", [], "run"), record)
    flush()
    (row,) = stoker.runs()
    assert (row["state"], row["exit_code"]) == (state, code)
