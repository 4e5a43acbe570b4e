"""`predict` in a loop: the model's function is called with the same rows, one by one or in full batches."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from stoker.doctor.experiments.rebuilding import CannotRebuildStep
from stoker.doctor.experiments.recorded_step import RecordedStep
from stoker.doctor.experiments.trials import TRIALS
from tests.doctor.experiments.recorded import finding_at, record_step, run_trial

ROWS = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)


def predict_rows(model: tf.keras.Model) -> None:
    for row in ROWS:
        model.predict(row[None], verbose=0)


def record(*layers: tf.keras.layers.Layer) -> RecordedStep:
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.Input((4,)), *layers])
    step, notes = record_step(lambda: predict_rows(model))
    assert notes == []
    assert step is not None
    return step


@pytest.fixture(scope="module")
def step() -> RecordedStep:
    return record(tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(2))


@pytest.mark.parametrize(("rows_are_there", "steps"), [(False, 1), (True, 32)])
def test_a_compiled_call_takes_the_place_of_predict(
    step: RecordedStep, rows_are_there: bool, steps: int
) -> None:
    finding = finding_at(predict_rows, "model.predict", "predict-in-loop", rows_are_there=rows_are_there)
    trial = run_trial(step, finding, "call-in-place-of-predict")
    assert trial.was is None
    assert trial.steps == steps


def test_a_row_is_an_argument_however_small_so_that_nothing_is_computed_beforehand(
    step: RecordedStep,
) -> None:
    finding = finding_at(predict_rows, "model.predict", "predict-in-loop")
    trial = TRIALS["call-in-place-of-predict"](step, finding)
    rebuilt = trial.repaired.run.args[0]  # type: ignore[attr-defined]
    assert [tuple(tensor.shape) for tensor in rebuilt.arguments] == [(1, 4)]


def test_a_function_that_only_takes_the_rows_it_was_traced_for_is_refused() -> None:
    # The number of rows is in the graph, as a constant.
    step = record(tf.keras.layers.Lambda(lambda x: tf.reshape(x, [x.shape[0] or 1, 2, 2])))
    finding = finding_at(predict_rows, "model.predict", "predict-in-loop", rows_are_there=True)
    with pytest.raises((CannotRebuildStep, tf.errors.InvalidArgumentError)):
        TRIALS["call-in-place-of-predict"](step, finding)
