"""Ops that are watched, run again and built into graphs."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import recorded_ops

Seen = list[tuple[str, tuple[tf.Tensor, ...], tuple[object, ...], tuple[tf.Tensor, ...]]]


def watched(run: object) -> Seen:
    seen: Seen = []
    stop = recorded_ops.watch_ops(lambda *told: seen.append(told))
    assert stop is not None
    try:
        run()  # type: ignore[operator]
    finally:
        stop()
    return seen


def test_every_eager_op_is_seen_with_its_tensors_those_of_gradients_too() -> None:
    weight, x = tf.Variable([[1.0, 2.0]]), tf.constant([[3.0], [4.0]])

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(weight, x))
        weight.assign_sub(tape.gradient(loss, weight))

    seen = watched(step)
    names = [name for name, _, _, _ in seen]
    assert {"MatMul", "Sum", "AssignSubVariableOp"} <= set(names)
    (product,) = [told for told in seen if told[0] == "MatMul"][:1]
    assert product[1][1] is x
    assert product[3][0].numpy() == 11.0
    # The watch is over: nothing more is told, and TensorFlow runs ops as before.
    count = len(seen)
    step()
    assert len(seen) == count


def test_a_second_watcher_is_refused() -> None:
    stop = recorded_ops.watch_ops(lambda *told: None)
    assert stop is not None
    try:
        assert recorded_ops.watch_ops(lambda *told: None) is None
    finally:
        stop()


def test_ops_run_again_eagerly_and_in_a_graph() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    def several() -> None:
        tf.concat([x, x * 2], axis=1)
        tf.split(x, 2, axis=1)
        tf.reduce_max(x[1:], axis=0)
        tf.cast(x, tf.int32)
        tf.einsum("ij,jk->ik", x, x)
        tf.meshgrid(x[0], x[1])

    for name, inputs, attributes, outputs in watched(several):
        again = recorded_ops.run_op(name, inputs, attributes, len(outputs))

        @tf.function(autograph=False)
        def graph(
            name: str = name,
            inputs: object = inputs,
            attributes: object = attributes,
            outputs: object = outputs,
        ) -> list[tf.Tensor]:
            return recorded_ops.add_op(name, inputs, attributes, outputs)  # type: ignore[arg-type]

        for expected, eager, traced in zip(outputs, again, graph(), strict=True):
            np.testing.assert_array_equal(expected, eager)
            np.testing.assert_array_equal(expected, traced)


def test_a_compiled_function_is_an_op_with_its_name_and_can_be_called_in_a_graph() -> None:
    total = tf.Variable(0.0)
    inner = tf.function(lambda x: x * 2)

    @tf.function
    def add(x: tf.Tensor) -> tf.Tensor:
        total.assign_add(inner(x))
        return x + 1

    add(tf.constant(1.0))
    seen = watched(lambda: add(tf.constant(1.0)))
    name, inputs, attributes, outputs = seen[-1]
    definition = recorded_ops.compiled_function(name)
    assert definition is not None
    assert recorded_ops.compiled_function("no such function") is None
    assert [called.startswith("__inference") for called in recorded_ops.called_functions(definition)] == [
        True
    ]
    called = recorded_ops.called_functions(definition)
    assert sorted(recorded_ops.gather_functions([name, "no such function"])) == sorted([name, *called])
    assert recorded_ops.gather_functions([name], {name: definition}) == {name: definition}
    again = tf.function(lambda: recorded_ops.add_op(name, inputs, attributes, outputs), autograph=False)
    assert [float(value) for value in again()] == [2.0]
    assert float(recorded_ops.run_op(name, inputs, attributes, 1)[0]) == 2.0
    assert float(total) == 8.0


def test_a_function_that_was_dropped_can_be_registered_again() -> None:
    @tf.function
    def double(x: tf.Tensor) -> tf.Tensor:
        return x * 2

    double(tf.constant(1.0))
    name, inputs, attributes, _ = watched(lambda: double(tf.constant(4.0)))[-1]
    definition = recorded_ops.compiled_function(name)
    assert definition is not None
    definition.signature.name = "a_name_nobody_has"
    assert recorded_ops.register_function(definition)
    assert not recorded_ops.register_function(definition)
    assert float(recorded_ops.run_op("a_name_nobody_has", inputs, attributes, 1)[0]) == 8.0
    recorded_ops.drop_function(definition)
    assert recorded_ops.compiled_function("a_name_nobody_has") is None


def test_a_watch_that_another_thread_ends_goes_at_the_next_op() -> None:
    from tensorflow.python.eager import context

    seen: list[str] = []
    stop = recorded_ops.watch_ops(lambda name, *rest: seen.append(name))
    assert stop is not None
    tf.constant(1.0) + 1.0
    ending = threading.Thread(target=stop)
    ending.start()
    ending.join()
    before = list(seen)
    tf.constant(1.0) + 1.0
    assert seen == before
    assert list(context.context().op_callbacks) == []


def test_variable_type_tells_variables_from_other_resources() -> None:
    variable = tf.Variable([1, 2])
    assert recorded_ops.variable_dtype(variable.handle) == tf.int32
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)
    assert recorded_ops.variable_dtype(table.resource_handle) is None


def test_the_graphs_of_a_function_tell_the_shapes_they_were_traced_for() -> None:
    weight = tf.Variable(tf.ones([3, 2]))

    @tf.function
    def multiply_by_weight(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.matmul(x, weight) + y

    for rows in (4, 5):
        multiply_by_weight(tf.ones([rows, 3]), tf.constant(1.0))
    open_shape = tf.TensorSpec([None, 3], tf.float32)
    multiply_by_weight.get_concrete_function(open_shape, tf.TensorSpec([], tf.float32))
    names = [name for name in recorded_ops.compiled_function_names() if "multiply_by_weight" in name]
    definitions = [recorded_ops.compiled_function(name) for name in names]
    shapes = [recorded_ops.input_shapes(made) for made in definitions if made is not None]
    assert sorted(shapes, key=str) == [((4, 3), (), None), ((5, 3), (), None), (None, (), None)]


@pytest.mark.parametrize("jit_compile", [True, False])
def test_a_definition_tells_whether_xla_compiles_it(jit_compile: bool) -> None:
    double = tf.function(lambda x: x * 2, jit_compile=jit_compile)
    name = watched(lambda: double(tf.constant(4.0)))[-1][0]
    definition = recorded_ops.compiled_function(name)
    assert definition is not None
    assert recorded_ops.is_compiled_by_xla(definition) is jit_compile


def test_a_definition_survives_its_bytes() -> None:
    function = tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([], tf.float32))
    definition = recorded_ops.compiled_function(function.name.decode())
    assert definition is not None
    assert recorded_ops.parse_function(definition.SerializeToString()) == definition


@pytest.mark.parametrize("shape", [None, [], [2, None]])
def test_a_handle_knows_the_shape_of_its_variable(shape: list[int | None] | None) -> None:
    value = tf.zeros([2, 3]) if shape != [] else tf.zeros([])
    variable = tf.Variable(value, shape=tf.TensorShape(shape))
    assert recorded_ops.variable_shape(variable.handle) == shape
