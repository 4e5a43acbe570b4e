"""A step goes into a file and comes out as one that computes the same, in variables of its own."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from stoker.doctor.experiments import checking
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, check_repeatable
from stoker.doctor.experiments.recorded_step import RecordedFeed, RecordedStep, read_variables
from stoker.doctor.experiments.saving import LoadedStep, read_steps, write_steps
from stoker.doctor.experiments.trials import TRIALS
from stoker.errors import RecordError
from tests.doctor.experiments.recorded import finding_at, record_step, run_trial

ROWS = np.random.default_rng(0).random((64, 4))


class Loop:
    """A step with all that a file has to hold: variables, random ops, attributes of every kind, calls, feeds, input."""

    def __init__(self) -> None:
        self.weight = tf.Variable(tf.random.stateless_normal([4, 3], [1, 2]))
        self.counts = tf.Variable([0, 0], dtype=tf.int64, shape=tf.TensorShape(None))
        self.half = tf.Variable(tf.ones([3], tf.bfloat16))
        self.elements = iter(tf.data.Dataset.range(100))
        self.call = tf.function(self.grow)

    def grow(self, rows: tf.Tensor) -> tf.Tensor:
        self.counts.assign(self.counts + 1)
        return tf.reduce_sum(tf.nn.relu(rows @ self.weight))

    def train_step(self, rows: tf.Tensor) -> tf.Tensor:
        noise = tf.random.normal([8, 4], seed=3)
        with tf.GradientTape() as tape:
            made = tf.nn.conv2d(
                tf.reshape(rows + noise, [8, 2, 2, 1]), tf.ones([1, 1, 1, 1]), 1, b"SAME".decode()
            )
            loss = tf.reduce_mean(tf.square(tf.reshape(made, [8, 4]) @ self.weight))
        self.weight.assign_sub(0.1 * tape.gradient(loss, self.weight))
        self.half.assign_add(tf.cast(self.weight[0], tf.bfloat16))
        tf.strings.join(["a", "b"])
        return loss

    def run(self) -> None:
        for number in range(12):
            rows = tf.constant(ROWS[number : number + 8], tf.float32)
            float(self.train_step(rows))
            self.call(rows)
            self.read_input()

    def read_input(self) -> None:
        tf.data.Dataset.range(4).map(lambda n: n + 1)
        next(self.elements)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordedStep, LoadedStep]:
    loop = Loop()
    step, notes = record_step(loop.run)
    assert step is not None, notes
    path = tmp_path_factory.mktemp("saved") / "run.steps.zip"
    write_steps([step], path)
    assert path.stat().st_mode & 0o077 == 0
    (loaded,) = read_steps(path)
    return step, loaded


def test_it_is_the_same_step(both: tuple[RecordedStep, LoadedStep]) -> None:
    step, loaded = both
    for name in ("count", "held", "goes_on"):
        assert getattr(step, name) == getattr(loaded, name)
    assert list(step.marks) == list(loaded.marks)
    assert step.functions.items() <= loaded.functions.items()
    assert [op.name for op in step.ops()] == [op.name for op in loaded.ops()]
    assert [type(event) for event in step.events] == [type(event) for event in loaded.events]
    assert len(step.before) == len(loaded.before)
    for (_, value), (handle, again) in zip(step.before, loaded.before, strict=True):
        np.testing.assert_array_equal(value.numpy(), again.numpy())
        # The program's variables are not touched by what is done with these.
        assert all(handle is not own for own, _ in step.before)


def test_its_repairs_are_checked_and_timed_in_its_own_variables(
    both: tuple[RecordedStep, LoadedStep],
) -> None:
    step, loaded = both
    before = [value.numpy() for _, value in read_variables(step.handles())]
    trial = run_trial(
        loaded, finding_at(Loop.train_step, "GradientTape", "eager-train-step"), "function-as-graph"
    )
    assert len(trial.replaces.places) > 5
    run_trial(loaded, finding_at(Loop.run, "self.call(rows)", "launch-bound"), "many-steps")
    finding = finding_at(Loop.run, "tf.constant(ROWS", "numpy-feed-in-loop")
    assert run_trial(loaded, finding, "resident-data").replaces.gaps
    for old, (_, new) in zip(before, read_variables(step.handles()), strict=True):
        np.testing.assert_array_equal(old, new.numpy())


def test_a_step_whose_data_has_changed_is_refused(both: tuple[RecordedStep, LoadedStep]) -> None:
    _, loaded = both
    before = loaded.before
    loaded.before = [(handle, value + tf.ones_like(value)) for handle, value in before]
    finding = finding_at(Loop.train_step, "GradientTape", "eager-train-step")
    try:
        with checking.variables_put_back(loaded), pytest.raises(CannotRebuildStep, match="different values"):
            TRIALS["function-as-graph"](loaded, finding)
    finally:
        loaded.before = before


def test_what_a_file_cannot_hold_is_not_run(both: tuple[RecordedStep, LoadedStep]) -> None:
    _, loaded = both
    lost = [op for op in loaded.ops() if op.name in ("MapDataset", "ParallelMapDatasetV2", "IteratorGetNext")]
    assert len({op.name for op in lost}) == 2
    for op in lost:
        with pytest.raises(CannotRebuildStep, match="the file does not hold"):
            check_repeatable(op, loaded)


class Table:
    """Data of the program's own."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.ones([8, 4], "float32")


def test_what_it_was_fed_is_made_again_unless_it_was_of_the_programs_own(tmp_path: Path) -> None:
    weight = tf.Variable(1.0)

    def run_loop() -> None:
        for _ in range(12):
            for data in ([[1.0, 2.0]], np.float32(3.0), Table()):
                weight.assign(tf.reduce_sum(tf.constant(data)))

    step, notes = record_step(run_loop)
    assert step is not None, notes
    write_steps([step], tmp_path / "steps.zip")
    (loaded,) = read_steps(tmp_path / "steps.zip")
    feeds = [event for event in loaded.events if isinstance(event, RecordedFeed)]
    plain = [feed for feed in feeds if feed.is_plain]
    assert len(plain) < len(feeds)
    for feed in plain:
        np.testing.assert_array_equal(feed.convert().numpy(), loaded.values[feed.value].numpy())
    (own,) = [feed for feed in feeds if not feed.is_plain]
    with pytest.raises(CannotRebuildStep, match="what the step was fed"):
        own.convert()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no step was kept"):
        read_steps(tmp_path / "none.zip")
    (tmp_path / "text.zip").write_text("text")
    with pytest.raises(RecordError, match="is damaged"):
        read_steps(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "newer.zip", "w") as archive:
        archive.writestr("steps.json", '{"schema": 99, "steps": [], "sources": {}}')
    with pytest.raises(RecordError, match="from a different version of Stoker"):
        read_steps(tmp_path / "newer.zip")
