"""Graphs, operations, variables and tables."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from stoker.tf_internals import graphs


@tf.function
def inner(x: Any) -> Any:
    return tf.nn.relu(x)


@tf.function
def outer(x: Any) -> Any:
    return inner(x)


def traced() -> Any:
    return outer.get_concrete_function(tf.TensorSpec([2])).graph


def types(graph: Any) -> set[str]:
    return {op.type for op in graph.get_operations()}


def test_new_graph_captures() -> None:
    outside = tf.constant(1.0)
    graph = graphs.new_graph("new")
    with graph.as_default():
        made = tf.identity(outside)
    assert made.graph is graph
    assert next(one for one, _ in graph.captures) is outside


def test_called_graphs_are_those_of_inner_functions() -> None:
    assert "Relu" not in types(traced())
    assert any("Relu" in types(one) for one in graphs.called_graphs(traced()))


def test_called_graph_of_an_op() -> None:
    (call,) = (op for op in traced().get_operations() if "PartitionedCall" in op.type)
    assert "Relu" in types(graphs.called_graph(call))


def test_set_input_and_add_control_inputs() -> None:
    graph = graphs.new_graph("rewired")
    with graph.as_default():
        one, other = tf.constant(1.0), tf.constant(2.0)
        user = tf.nn.relu(one).op
        graphs.set_input(user, 0, other)
        graphs.add_control_inputs(user, [one.op])
    assert user.inputs[0] is other
    assert [op.name for op in user.control_inputs] == [one.op.name]


def test_definition_tells_of_state() -> None:
    assert graphs.definition("RandomUniform").is_stateful
    relu = graphs.definition("Relu")
    assert not relu.is_stateful
    assert [one.name for one in relu.input_arg] == ["features"]
    assert [one.name for one in relu.attr] == ["T"]
    assert graphs.definition("NoSuchOperation") is None


def test_kernel_devices() -> None:
    assert "CPU" in graphs.kernel_devices("Relu")
    assert graphs.kernel_devices("NoSuchOperation") == []


def test_freeze_leaves_no_variable() -> None:
    factor = tf.Variable(3.0)
    times = tf.function(lambda x: factor * x).get_concrete_function(tf.TensorSpec([], name="x"))
    frozen = graphs.freeze(times)
    assert float(frozen(tf.constant(2.0))[0]) == 6
    assert not frozen.variables
    assert [one.name for one in frozen.inputs] == ["x:0"]


def test_make_variable_asks_no_creator() -> None:
    asked = []

    def creator(next_creator: Any, **options: Any) -> Any:
        asked.append(options)
        return next_creator(**options)

    with tf.variable_creator_scope(creator):
        made = graphs.make_variable(initial_value=1.0, name="made", trainable=False)
        assert not asked
        tf.Variable(1.0)
    assert len(asked) == 1
    assert isinstance(made, tf.Variable)
    assert not made.trainable


def test_tables() -> None:
    """`is_filled_once` and `is_resource`."""
    filled = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    open_table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    assert graphs.is_filled_once(filled)
    assert not graphs.is_filled_once(open_table)
    assert graphs.is_resource(filled)
    assert graphs.is_resource(open_table)
    assert not graphs.is_resource(tf.Variable(1.0))


def test_is_composite() -> None:
    assert graphs.is_composite(tf.ragged.constant([[1], []]))
    assert graphs.is_composite(tf.sparse.from_dense([[1, 0]]))
    assert not graphs.is_composite(tf.constant([1]))


def test_an_op_is_made_by_the_name_of_its_kind() -> None:
    @tf.function
    def double(x: tf.Tensor) -> tf.Tensor:
        added = tf.raw_ops.AddV2(x=x, y=x)
        (made,) = graphs.make_op("AddV2", [x, x], {"T": added.op.node_def.attr["T"]}, [tf.float32])
        return made

    assert float(double(tf.constant(2.0))) == 4.0


def test_functions_are_traced_into_graphs_of_that_type() -> None:
    """`graph_type`."""
    concrete = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec(()))
    assert isinstance(concrete.graph, graphs.graph_type())
    assert not isinstance(tf.Graph(), graphs.graph_type())


def test_list_callees_and_get_node_name() -> None:
    (call,) = (node for node in traced().as_graph_def().node if "Call" in node.op)
    assert any("inner" in name for name in graphs.list_callees(call))
    assert call.op in graphs.list_callees(call)
    assert [graphs.get_node_name(one) for one in ("^a/b", "a/b:1", "a/b")] == ["a/b"] * 3
