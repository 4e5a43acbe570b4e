"""What a line computes only to read it, on recorded steps."""

from __future__ import annotations

import pytest
import tensorflow as tf

from stoker.doctor.experiments.reads import ops_for_reads
from stoker.doctor.experiments.rebuilding import CannotRebuildStep
from tests.doctor.experiments.recorded import finding_at, record_step, run_trial


def test_norms_of_gradients_go_with_their_reads_and_the_update_stays() -> None:
    weights = [tf.Variable(tf.ones([4, 4])) for _ in range(3)]
    train_step = tf.function(lambda: [weight.assign_sub(0.01 * weight) * 1.0 for weight in weights])
    norms: list[list[float]] = []

    def run_loop() -> None:
        for _ in range(12):
            gradients = train_step()
            norms.append([float(tf.norm(gradient)) for gradient in gradients])

    step, _ = record_step(run_loop)
    assert step is not None
    finding = finding_at(run_loop, "tf.norm", "sync-in-loop")
    names = {op.name for op in ops_for_reads(step, finding)}
    assert "Sqrt" in names
    assert not any("inference" in name for name in names)
    trial = run_trial(step, finding, "without-reads")
    assert len(trial.replaces.places) == len(ops_for_reads(step, finding))


def test_what_the_next_step_uses_stays() -> None:
    weight = tf.Variable(tf.ones([4]))

    def run_loop() -> None:
        total = tf.constant(0.0)
        for _ in range(12):
            weight.assign_sub(0.1 * weight)
            total = total + tf.reduce_sum(weight)
            float(total)

    step, _ = record_step(run_loop)
    with pytest.raises(CannotRebuildStep, match="nothing but what it reads"):
        run_trial(step, finding_at(run_loop, "float(total)", "sync-in-loop"), "without-reads")
