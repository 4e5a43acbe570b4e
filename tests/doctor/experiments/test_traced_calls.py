"""A function that is traced again and again: one of its graphs is called once more, of a usual size."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from stoker.doctor.experiments import checking
from stoker.doctor.experiments.rebuilding import CannotRebuildStep
from stoker.doctor.experiments.trials import TRIALS
from tests.doctor.experiments.recorded import finding_at, record_step, run_trial


def test_a_python_argument_is_one_more_call_of_a_graph_that_is_there() -> None:
    weight = tf.Variable(tf.ones([4, 1]))

    @tf.function
    def train_step(x: tf.Tensor, rate: float) -> tf.Tensor:
        weight.assign_sub(rate * tf.matmul(x, tf.matmul(x, weight), transpose_a=True))
        return tf.reduce_sum(weight)

    def run_loop() -> None:
        for number in range(12):
            train_step(tf.ones([8, 4]), 0.01 / (1 + number))

    step, notes = record_step(run_loop)
    assert notes == []
    finding = finding_at(run_loop, "train_step", "retrace-python-arg", function="train_step")
    traces = train_step.experimental_get_tracing_count()
    trial = run_trial(step, finding, "same-graph")
    # The run alone tells what tracing takes.
    assert trial.was is None
    assert train_step.experimental_get_tracing_count() == traces


def test_data_of_the_mean_size_are_given_to_the_graph_for_it_where_shapes_change() -> None:
    weight, rows = tf.Variable(tf.ones([4, 1])), tf.Variable(0)

    @tf.function
    def train_step(x: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        rows.assign(x.shape[0])
        error = tf.matmul(x, weight)[:, 0] - tf.cast(labels, tf.float32)
        weight.assign_sub(0.01 * tf.matmul(x, error[:, None], transpose_a=True))
        return tf.reduce_sum(error)

    def run_loop() -> None:
        for number in range(14):
            train_step(tf.ones([8 + 10 * number, 4]), tf.range(8 + 10 * number))

    step, notes = record_step(run_loop)
    assert notes == []
    assert step is not None
    finding = finding_at(run_loop, "train_step", "retrace-shape", function="train_step")
    trial = run_trial(step, finding, "same-graph")
    with checking.variables_put_back(step):
        trial.repaired.run()
        assert int(rows) in (68, 78)


def test_a_function_made_in_the_loop_is_called_again_though_the_program_has_dropped_it() -> None:
    rows = np.ones([12, 8, 4], np.float32)

    def run_loop() -> None:
        for row in rows:

            @tf.function
            def total(x: tf.Tensor) -> tf.Tensor:
                return tf.reduce_sum(tf.random.normal([8, 4]) + x)

            float(total(tf.constant(row)))

    step, notes = record_step(run_loop)
    assert notes == []
    finding = finding_at(run_loop, "@tf.function", "tf-function-in-loop", function="total")
    run_trial(step, finding, "same-graph")


@pytest.mark.parametrize(
    ("options", "name", "reason"),
    [
        ({"jit_compile": True}, "step", "XLA compiles the function"),
        ({}, "other", "does not call the function"),
    ],
)
def test_what_cannot_be_called_again_is_refused(options: dict[str, bool], name: str, reason: str) -> None:
    weight = tf.Variable(1.0)

    @tf.function(**options)
    def step(rate: float) -> tf.Tensor:
        return weight.assign_sub(rate)

    def run_loop() -> None:
        for number in range(12):
            step(float(number))

    recorded, notes = record_step(run_loop)
    assert notes == []
    assert recorded is not None
    finding = finding_at(run_loop, "step(float", "retrace-python-arg", function=name)
    with pytest.raises(CannotRebuildStep, match=reason):
        TRIALS["same-graph"](recorded, finding)


def test_the_rest_of_the_step_may_do_what_must_not_be_done_again() -> None:
    weight, momentum = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0])

    @tf.function
    def train_step(rate: float) -> tf.Tensor:
        return weight.assign_sub(rate * weight)

    def run_loop() -> None:
        for number in range(12):
            tf.py_function(lambda: 1.0, [], tf.float32)
            # What the function finds in its variable depends on another one, which it does not use.
            momentum.assign(0.9 * momentum + 1.0)
            weight.assign(weight + momentum)
            train_step(float(number))

    step, notes = record_step(run_loop)
    assert notes == []
    finding = finding_at(run_loop, "train_step(", "retrace-python-arg", function="train_step")
    run_trial(step, finding, "same-graph")
