"""Batches made on the host: the Python that makes them goes, unless it depends on what the step has read."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.experiments.recorded import finding_at, record_step, run_trial

ROWS = np.random.default_rng(0).random((64, 10))


def test_the_python_that_makes_a_batch_goes_with_all_its_conversions() -> None:
    weight = tf.Variable(tf.ones([10, 1]))
    train_step = tf.function(lambda x, y: weight.assign_sub(0.1 * tf.reduce_mean(x * y, 0)[:, None]))
    losses: list[float] = []

    def run_loop() -> None:
        for number in range(12):
            rows = (ROWS[number : number + 8] - 0.5) / 2
            images = tf.constant(rows, tf.float32)
            labels = tf.constant(rows[:, :1], tf.float32)
            losses.append(float(train_step(images, labels)[0, 0]))

    step, _ = record_step(run_loop)
    trials = [
        run_trial(step, finding_at(run_loop, text, "numpy-feed-in-loop"), "resident-data")
        for text in ("images = ", "labels = ")
    ]
    assert trials[0].replaces.gaps
    assert trials[0].replaces == trials[1].replaces


def test_the_world_of_an_agent_stays() -> None:
    weight = tf.Variable(tf.ones([4, 2]))
    choose = tf.function(lambda x: tf.argmax(weight.assign_sub(0.01 * weight)[0] * tf.reduce_sum(x)))

    def run_loop() -> None:
        state = np.ones((1, 4), "float32")
        for _ in range(12):
            action = int(choose(tf.constant(state)))
            state = state * 0.9 + action

    step, _ = record_step(run_loop)
    trial = run_trial(step, finding_at(run_loop, "choose(", "numpy-feed-in-loop"), "resident-data")
    assert not trial.replaces.gaps


def test_of_an_array_that_stays_the_same_only_the_conversion_goes() -> None:
    weight = tf.Variable(tf.ones([10, 1]))
    train_step = tf.function(lambda x: weight.assign_sub(0.1 * tf.reduce_mean(x, 0)[:, None]))
    table = ROWS.astype("float32")

    def run_loop() -> None:
        for _ in range(12):
            train_step(tf.constant(table))

    step, _ = record_step(run_loop)
    finding = finding_at(run_loop, "tf.constant(table)", "numpy-feed-in-loop", same_array=True)
    assert not run_trial(step, finding, "resident-data").replaces.gaps
