"""The trainer under Stoker's own eyes: the guard finds nothing to stop, the ledger counts its steps and its saves."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker import clock
from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.parts.tallies import CheckpointsPart, ReadsPart
from stoker.doctor.probes.session import Session
from stoker.train.planning import decide, trials
from tests.support import run_stoker, write_program

ROWS, BATCH = 400, 8
X = np.random.RandomState(0).rand(ROWS, 8).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def compiled() -> Any:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    return model


class Reading(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        float(self.model.layers[0].kernel.value[0, 0])


def test_a_guard_stops_nothing_of_fit_itself(tmp_path: Path) -> None:
    with stoker.guard(copies=0, per_step=True) as report:
        stoker.fit(
            compiled(),
            X,
            Y,
            BATCH,
            2,
            verbose=0,
            validation_split=0.2,
            checkpoint=stoker.Checkpoint(tmp_path, every=10),
        )
    assert report.steps == 2 * 40
    assert report.syncs == report.copies == report.retraces == 0
    assert report.framework_syncs > 0


def test_a_guard_stops_what_a_callback_reads() -> None:
    with pytest.raises(stoker.SyncError, match="on_epoch_end"), stoker.guard():
        stoker.fit(compiled(), X, Y, BATCH, 1, verbose=0, callbacks=[Reading()])


def test_watch_keeps_the_books_of_fit_without_being_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    watch = stoker.Watch()
    pause = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: time.sleep(0.4))
    history = stoker.fit(compiled(), X, Y, BATCH, 3, verbose=0, callbacks=[watch, pause])
    # Watch asks for no batch by itself: calls stay longer than one step, however slow the machine is.
    assert history.plan.steps_per_call > 1
    assert watch.record is not None
    assert watch.record.steps == 150
    assert "150\xa0steps" in capfd.readouterr().err


def test_trial_steps_are_not_counted_as_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trials, "SHORTEST_JOB_S", 0.0)
    monkeypatch.setattr(decide, "FEWEST_STEPS_FOR_XLA", 100)
    session = Session(clock.now_ns(), user_root=None)
    session.attach_now()
    try:
        model = compiled()
        history = stoker.fit(model, X, Y, BATCH, 3, verbose=0, checkpoint=tmp_path / "run")
        measured = session.measurements()
    finally:
        session.detach()
    assert "deciding_s" in history.plan.figures
    assert measured[StepsPart].count == int(model.optimizer.iterations) == 150
    assert measured[Books].totals["checkpoint"] > 0
    assert sum(tally.count for tally in measured[CheckpointsPart].by_site.values()) >= 1
    assert measured[ReadsPart].by_site == {}
    assert measured[Books].notes == []


TRAINER = """
    import sys
    import keras, numpy as np, stoker

    def step(model, batch, training):
        x, y = batch
        return keras.losses.mean_squared_error(y, model(x, training=training))

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(4), keras.layers.Dense(1)])
    x = np.random.rand(400, 8).astype("float32")
    trainer = stoker.Trainer(model, keras.optimizers.Adam(), step)
    trainer.fit(x, x[:, :1], batch_size=8, epochs=4, verbose=0, checkpoint=stoker.Checkpoint("run", every=20))
    trainer.evaluate(x, x[:, :1])
"""


@pytest.mark.slow
def test_a_run_of_a_trainer_has_its_steps_and_its_saves_on_the_books(tmp_path: Path) -> None:
    write_program(tmp_path, textwrap.dedent(TRAINER))
    outcome = run_stoker(tmp_path, "train.py")
    assert outcome.code == 0, outcome.stderr
    record = outcome.record
    assert record is not None
    assert record["steps"] == 200
    assert record["examples_per_s"] == pytest.approx(8 * record["steps_per_s"], rel=1e-3)
    assert record["accounts"]["checkpoint"] > 0
    assert [finding["kind"] for finding in record["findings"] if finding["kind"] == "sync-in-loop"] == []
