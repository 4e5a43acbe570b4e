"""Changes to a step while it is traced: making variables outside of its graph, and removing products with 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from stoker.tf_internals.graphs import add_control_inputs, make_variable, set_input
from stoker.tf_internals.types import Graph, Nest, Variable


def drop_trivial_products(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the step without products with a constant 1, so that TensorFlow fuses the rest as it does in Keras' step.

    TensorFlow itself removes these products, but leaves a control edge from the constant. In a plain function, such as
    Keras' step, it then drops the edge, since a constant waits for nothing. In the body of a loop, a constant waits for
    the loop's iteration: the edge stays, and TensorFlow fuses no op that has one. `tf.nn.silu` computes
    `x * sigmoid(1.0 * x)`. So Keras' step used oneDNN's kernel for swish, which rounds in its own way, but the loop's
    body did not.
    """

    def run(*args: Nest) -> Nest:
        done = step(*args)
        _remove_trivial_products(tf.compat.v1.get_default_graph())
        return done

    return run


def _remove_trivial_products(graph: Graph) -> None:
    """Make ops in this graph that take `1 * x` take `x` instead, which is the same in every bit."""
    for op in graph.get_operations():
        if op.type != "Mul":
            continue
        for one, other in (op.inputs, op.inputs[::-1]):
            if _is_one(one):
                _bypass(op, other, [*op.control_inputs, *one.op.control_inputs])
                break


def _bypass(product: tf.Operation, factor: tf.Tensor, awaited: list[tf.Operation]) -> None:
    for consumer in product.outputs[0].consumers():
        for number, taken in enumerate(consumer.inputs):
            if taken is product.outputs[0]:
                set_input(consumer, number, factor)
        # Wait for what the product waited for: `tf.nn.silu` delays the sigmoid of its gradient in this way.
        add_control_inputs(consumer, awaited)


def _is_one(tensor: tf.Tensor) -> bool:
    # Only a scalar: it leaves the product with the shape of the other factor.
    if tensor.op.type != "Const" or tensor.shape.rank != 0 or not tensor.dtype.is_floating:
        return False
    return bool(tf.get_static_value(tensor) == 1)


_OPTIONS = frozenset(
    {
        "aggregation",
        "caching_device",
        "constraint",
        "dtype",
        "initial_value",
        "name",
        "shape",
        "synchronization",
        "trainable",
        "validate_shape",
    }
)


def lift_variables(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the step, with the variables it creates during tracing made at once and outside its graph.

    Otherwise TensorFlow would trace such a step a second time, to be sure that it then makes no variables. A first step
    makes many (the optimizer's slots, metrics, a model that builds itself), so every first call would be traced twice.
    """

    def run(*args: Nest) -> Nest:
        with tf.variable_creator_scope(_make_outside):
            return step(*args)

    return run


def _make_outside(next_creator: Callable[..., Variable], **options: object) -> Variable:
    given = {name: value for name, value in options.items() if value is not None and name in _OPTIONS}
    # A strategy makes variables in its own way, and a value of the graph exists only in the graph.
    if tf.distribute.has_strategy() or isinstance(given.get("initial_value"), tf.Tensor):
        return next_creator(**options)
    try:
        with tf.init_scope():
            if not tf.executing_eagerly():
                return next_creator(**options)
            return make_variable(**given)
    except TypeError:
        # An initializer that uses a tensor of the graph: TensorFlow raises this error for a tensor that is out of
        # scope.
        return next_creator(**options)
