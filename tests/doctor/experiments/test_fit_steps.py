"""Steps of Keras' `fit` that run op by op: the repaired step is one call, and what `fit` does around it stays."""

from __future__ import annotations

import time
from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.doctor.experiments.fit_steps import list_ops_of_call
from stoker.doctor.experiments.marking import part_of
from stoker.doctor.experiments.rebuilding import Rebuilt
from stoker.doctor.experiments.recorded_step import RecordedStep
from stoker.tf_internals.types import Model
from tests.doctor.experiments.recorded import finding_at, record_step, run_trial

WORK_S = 0.004


def work() -> None:
    """Take this much processor time."""
    end = time.thread_time() + WORK_S
    while time.thread_time() < end:
        pass


class WorkingCallback(keras.callbacks.Callback):
    """Takes its time before and after each batch, and computes something of its own."""

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        work()

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        tf.norm(self.model.trainable_weights[0])
        work()


class OwnStep(keras.Model):
    """A model with a step of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.dense(x)

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def small_model() -> Model:
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(1)])


def fit_eagerly(make: Callable[[], Model] = small_model) -> None:
    model = make()
    model.compile("sgd", "mse", run_eagerly=True)
    x, y = np.ones((96, 4), "float32"), np.ones((96, 1), "float32")
    model.fit(x, y, batch_size=8, verbose=0, callbacks=[WorkingCallback()])


def fit_compiled() -> None:
    model = small_model()
    model.compile("sgd", "mse")
    model.fit(np.ones((48, 4), "float32"), np.ones((48, 1), "float32"), batch_size=4, verbose=0)


@pytest.fixture(scope="module")
def recorded() -> RecordedStep:
    step, notes = record_step(fit_eagerly)
    assert step is not None
    assert notes == []
    return step


def test_the_call_ends_before_the_callbacks(recorded: RecordedStep) -> None:
    call = list_ops_of_call(recorded)
    assert call[0].name == "IteratorGetNext"
    functions = {function for op in call for _, _, function in op.stack}
    assert "on_train_batch_end" not in functions
    last = recorded.ops()[-1]
    assert last.stack[0][2] == "on_train_batch_end"


def test_what_fit_and_its_callbacks_do_around_the_call_is_not_replaced(recorded: RecordedStep) -> None:
    finding = finding_at(fit_eagerly, "model.fit", "eager-train-step")
    trial = run_trial(recorded, finding, "function-as-graph")
    part = part_of(recorded.marks, recorded.count, trial.replaces)
    assert part is not None
    for step_s, replaced_s in zip(part.step_s, part.part_s, strict=True):
        assert 0 < replaced_s <= step_s - 2 * WORK_S


def test_the_call_takes_its_batch_from_an_iterator_as_in_fit(recorded: RecordedStep) -> None:
    finding = finding_at(fit_eagerly, "model.fit", "eager-train-step")
    trial = run_trial(recorded, finding, "function-as-graph")
    assert isinstance(trial.repaired.run, Rebuilt)
    assert isinstance(trial.repaired.run.arguments[0], tf.data.Iterator)


def test_a_step_of_the_users_own_goes_into_the_call_that_fit_makes() -> None:
    step, notes = record_step(lambda: fit_eagerly(OwnStep))
    assert step is not None
    assert notes == []
    finding = finding_at(OwnStep.train_step, "GradientTape", "eager-train-step")
    trial = run_trial(step, finding, "function-as-graph")
    assert trial.replaces.places == {op.place for op in list_ops_of_call(step)[1:] if op.place >= 0}


def test_a_compiled_fit_has_no_ops_of_such_a_call() -> None:
    step, _ = record_step(fit_compiled)
    assert step is not None
    assert list_ops_of_call(step) == []
