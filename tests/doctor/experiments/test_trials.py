"""What is timed for each kind of repair, on recorded steps: it is checked, and it runs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from stoker.doctor.experiments.rebuilding import CannotRebuildStep
from stoker.doctor.experiments.recorded_step import RecordedStep
from stoker.doctor.experiments.trials import TRIALS
from tests.doctor.experiments.recorded import finding_at, record_step, run_trial


def test_two_functions_of_one_step_are_rebuilt_one_by_one() -> None:
    first, second = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])

    def train_first() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(first * second)
        first.assign_sub(0.1 * tape.gradient(loss, first))

    def train_second() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(first * second)
        second.assign_sub(0.1 * tape.gradient(loss, second))

    def run_loop() -> None:
        for _ in range(12):
            train_first()
            train_second()

    step, notes = record_step(run_loop)
    assert notes == []
    for function in (train_first, train_second):
        run_trial(step, finding_at(function, "GradientTape", "eager-train-step"), "function-as-graph")


def test_compiled_calls_run_in_one_call() -> None:
    weight = tf.Variable(tf.ones([4, 1]))

    @tf.function
    def train_step(x: tf.Tensor) -> tf.Tensor:
        weight.assign_sub(0.01 * tf.matmul(x, tf.matmul(x, weight), transpose_a=True))
        return tf.reduce_sum(weight)

    def run_loop() -> None:
        for number in range(12):
            float(train_step(tf.ones([8, 4]) * float(number)))

    step, notes = record_step(run_loop)
    assert notes == []
    run_trial(step, finding_at(run_loop, "train_step", "launch-bound"), "many-steps")


def test_many_steps_in_one_call_compute_what_the_next_step_needs() -> None:
    """Nothing read it in its own step, so it was pruned, and the loop took next to nothing."""

    @tf.function
    def advance(place: tf.Tensor) -> tf.Tensor:
        return tf.cos(place) * 2.0

    def run_loop() -> None:
        place = tf.ones([8])
        total = tf.constant(0.0)
        for _ in range(12):
            place = advance(place)
            total = total + 1.0

    step, _ = record_step(run_loop)
    assert step is not None
    finding = finding_at(run_loop, "advance(place)", "launch-bound")
    trial = run_trial(step, finding, "many-steps")
    given = trial.repaired.run()
    assert isinstance(given, list)
    # The eager op beside the call is in the loop, too.
    assert sorted(tensor.shape.rank for tensor in given) == [0, 1]


def test_rows_are_taken_from_a_tensor_where_host_data_was_made_into_one() -> None:
    images, weight = np.random.default_rng(0).random((64, 10)), tf.Variable(tf.ones([10, 1]))
    train_step = tf.function(lambda x: weight.assign_sub(0.1 * tf.reduce_mean(x, 0)[:, None]))

    def run_loop() -> None:
        for number in range(12):
            batch = tf.constant(images[number : number + 16], tf.float32)
            train_step(batch)

    step, notes = record_step(run_loop)
    assert notes == []
    finding = finding_at(run_loop, "tf.constant", "numpy-feed-in-loop")
    run_trial(step, finding, "resident-data")
    images[:] = 0.0
    assert step is not None
    with pytest.raises(CannotRebuildStep, match="the data has changed since"):
        TRIALS["resident-data"](step, finding)


def test_a_finding_that_the_recorded_step_does_not_hold_is_refused() -> None:
    step = RecordedStep(None)
    finding = finding_at(test_compiled_calls_run_in_one_call, "def run_loop", "launch-bound")
    for trial in TRIALS.values():
        with pytest.raises(CannotRebuildStep):
            trial(step, finding)


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
