"""A recorded step, made again: as one graph it gives the same values and writes the same variables."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from stoker.doctor.experiments import checking, rebuilding
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedStep, read_variables
from tests.doctor.experiments.recorded import record_step

tf.keras.utils.set_random_seed(5)
INPUTS = tf.random.normal([16, 8])
LABELS = tf.constant([0, 1] * 8)


def make_step() -> tuple[tf.keras.Model, object]:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8,)),
            layers.Dense(12, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.2),
            layers.Dense(2),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(0.01)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def train_step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            noise = tf.random.normal([16, 8]) * 0.01
            loss = loss_of(LABELS, model(INPUTS + noise, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return model, train_step


@pytest.fixture(scope="module")
def step() -> RecordedStep:
    _, train_step = make_step()

    def run_loop() -> None:
        for _ in range(12):
            float(train_step())  # type: ignore[operator]

    made, notes = record_step(run_loop)
    assert made is not None, notes
    assert notes == []
    return made


def eager_ops(step: RecordedStep) -> list[RecordedOp]:
    return [op for op in step.ops() if not rebuilding.is_input(op)]


def test_one_step_is_recorded_with_its_ops_its_read_and_its_variables(step: RecordedStep) -> None:
    names = [op.name for op in step.ops()]
    assert names.count("SparseSoftmaxCrossEntropyWithLogits") == 1
    assert names.count("RandomStandardNormal") == 1
    assert len(step.events) > len(names)
    # Weights, moments, moving statistics, seeds and counters.
    assert len(step.before) == len(step.after) > 15
    assert 0 < step.nbytes < 10**6
    assert all("train_step" in [site[2] for site in op.stack] for op in step.ops() if op.name == "MatMul")


def test_as_a_graph_it_gives_the_same_values_and_the_same_variables(step: RecordedStep) -> None:
    ops = eager_ops(step)
    rebuilt = rebuilding.rebuild(step, ops, frozen=True)
    with checking.variables_put_back(step):
        checking.check_rebuilt(step, ops, rebuilt)


def test_a_step_that_computes_something_else_is_refused(step: RecordedStep) -> None:
    ops = eager_ops(step)
    wrong = [op for op in ops if op.name != "AssignSubVariableOp"]
    assert len(wrong) < len(ops)
    rebuilt = rebuilding.rebuild(step, wrong, frozen=True)
    with checking.variables_put_back(step), pytest.raises(rebuilding.CannotRebuildStep, match="variables"):
        checking.check_rebuilt(step, ops, rebuilt)


def test_variables_are_put_back(step: RecordedStep) -> None:
    before = [value.numpy() for _, value in read_variables(h for h, _ in step.before)]
    with checking.variables_put_back(step):
        rebuilding.replay(step, eager_ops(step))()
    after = [value.numpy() for _, value in read_variables(h for h, _ in step.before)]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_replayed_op_by_op_it_writes_the_same_variables(step: RecordedStep) -> None:
    ops = [op for op in eager_ops(step) if op.name != "RandomStandardNormal"]
    with checking.variables_put_back(step):
        checking.set_variables(step.before)
        rebuilding.replay(step, ops)()
        now = read_variables(handle for handle, _ in step.after)
        for (_, expected), (_, got) in zip(step.after, now, strict=True):
            assert checking.is_same(expected, got)


def test_reads_are_joined_small_values_are_constants_and_the_rest_are_arguments(step: RecordedStep) -> None:
    ops = eager_ops(step)
    rebuilt = rebuilding.rebuild(step, ops)
    graph = rebuilt.function.get_concrete_function(*rebuilt.arguments).graph
    reads = [op.name for op in ops].count("ReadVariableOp")
    in_graph = [op.type for op in graph.get_operations()].count("ReadVariableOp")
    assert 0 < in_graph < reads
    assert all(argument.shape.num_elements() > 8 for argument in rebuilt.arguments)


def test_a_variable_given_to_an_op_is_read_in_the_graph() -> None:
    weight, data = tf.Variable(tf.ones([3, 3])), tf.ones([3, 3])

    def run_loop() -> None:
        for _ in range(12):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.matmul(weight, data))
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
            tf.matmul(weight, data)

    step, notes = record_step(run_loop)
    assert step is not None, notes
    assert [op.name for op in step.ops()].count("ReadVariableOp") == 2
    ops = eager_ops(step)
    with checking.variables_put_back(step):
        checking.check_rebuilt(step, ops, rebuilding.rebuild(step, ops))


def call_python() -> None:
    tf.py_function(lambda: 1.0, [], tf.float32)


def write_line() -> None:
    tf.print("never twice", output_stream="file:///dev/null")


@pytest.mark.parametrize("function", [call_python, write_line])
def test_what_must_not_run_again_is_refused_also_inside_compiled_functions(function: object) -> None:
    compiled = tf.function(function, autograph=False)
    weight = tf.Variable(1.0)

    def run_loop() -> None:
        for _ in range(12):
            with tf.GradientTape() as tape:
                loss = weight * weight
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
            compiled()

    step, notes = record_step(run_loop)
    assert step is not None, notes
    (call,) = [op for op in step.ops() if op.name.startswith("__")]
    with pytest.raises(rebuilding.CannotRebuildStep, match="the step runs"):
        rebuilding.check_repeatable(call, step)


def test_a_step_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.doctor.experiments.recording.MAX_BYTES", 1000)
    _, train_step = make_step()

    def run_loop() -> None:
        for _ in range(12):
            train_step()  # type: ignore[operator]

    assert record_step(run_loop) == (None, [])


@pytest.mark.parametrize(
    ("expected", "given", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0005], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([float("nan"), 1.0], [float("nan"), 1.0], True),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 3], False),
        ([1.0], [1], False),
        (["a"], ["b"], False),
    ],
)
def test_values_are_compared_to_rounding(expected: list[object], given: list[object], same: bool) -> None:
    assert checking.is_same(tf.constant(expected), tf.constant(given)) is same
