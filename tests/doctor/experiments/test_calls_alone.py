"""A starved step's compiled calls, timed on the recorded batch."""

from __future__ import annotations

import pytest
import tensorflow as tf

from stoker.doctor.experiments.rebuilding import CannotRebuildStep
from stoker.doctor.experiments.trials import TRIALS
from tests.doctor.experiments.recorded import finding_at, record_step, run_trial


def batches() -> tf.data.Dataset:
    return tf.data.Dataset.range(48).map(lambda i: tf.cast(i, tf.float32)).batch(4)


def test_the_calls_of_a_step_run_again_and_take_no_element() -> None:
    weight, seen = tf.Variable(1.0), tf.Variable(0.0)

    @tf.function
    def train_step(x: tf.Tensor) -> None:
        seen.assign(tf.reduce_max(x))
        weight.assign_sub(0.001 * tf.reduce_mean(x) * weight)

    def run_loop() -> None:
        for x in batches():
            train_step(x)

    step, notes = record_step(run_loop)
    assert notes == []
    assert step is not None
    trial = run_trial(step, finding_at(batches, "map(", "input-starved"), "calls-alone")
    assert trial.was is None
    seen.assign(-1.0)
    trial.repaired.run()
    # The recorded batch, not the next one: the dataset is at its end.
    assert float(seen) in {3.0 + 4 * number for number in range(12)}


def test_a_step_that_takes_its_element_inside_the_graph_is_refused() -> None:
    weight = tf.Variable(1.0)

    @tf.function
    def train_step(iterator: tf.data.Iterator) -> None:
        weight.assign_sub(0.001 * tf.reduce_mean(next(iterator)) * weight)

    def run_loop() -> None:
        iterator = iter(batches())
        for _ in range(12):
            train_step(iterator)

    step, notes = record_step(run_loop)
    assert notes == []
    assert step is not None
    with pytest.raises(CannotRebuildStep, match="IteratorGetNext"):
        TRIALS["calls-alone"](step, finding_at(batches, "map(", "input-starved"))
