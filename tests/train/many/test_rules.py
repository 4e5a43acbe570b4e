"""The rules for stacked ops give the bits that each member's own op gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.train.many.flat_step import NotFlat, flatten_step
from stoker.train.many.member_values import MemberValue
from stoker.train.many.stacked_step import StackedStep

COUNT = 5

OPS: dict[str, Callable[[Any], Any]] = {
    "exp": tf.exp,
    "log": lambda x: tf.math.log(tf.abs(x)),
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "softplus": tf.math.softplus,
    "power": lambda x: tf.pow(tf.abs(x), 1.7),
    "root": lambda x: tf.sqrt(tf.abs(x)) / (x * x + 1.0),
    "mean": lambda x: tf.reduce_mean(x),
    "sum of columns": lambda x: tf.reduce_sum(x, 0),
    "sum of rows": lambda x: tf.reduce_sum(x, -1, keepdims=True),
    "softmax": tf.nn.softmax,
    "normalize": lambda x: (x - tf.reduce_mean(x, 0)) * tf.math.rsqrt(tf.math.reduce_variance(x, 0) + 1e-3),
    "product": lambda x: tf.matmul(x, x, transpose_b=True),
    "shapes": lambda x: tf.tile(tf.expand_dims(tf.transpose(tf.reshape(x, [-1])[None]), 1), [1, 2, 1]),
    "broadcast": lambda x: tf.where(x > 0.0, tf.broadcast_to(x[:1], tf.shape(x)), tf.squeeze(x[None], 0)),
    "bias": lambda x: tf.nn.relu(tf.nn.bias_add(x, x[0])),
}


@pytest.mark.parametrize("shape", [(32, 32), (17, 5), (1, 3)])
@pytest.mark.parametrize("name", OPS)
def test_a_stack_has_the_bits_of_each_member(name: str, shape: tuple[int, int]) -> None:
    values = np.random.default_rng(1).standard_normal((COUNT, *shape)).astype("float32")
    variable = tf.Variable(values[0])
    alone = tf.function(lambda: OPS[name](variable.read_value()), autograph=False)
    concrete = alone.get_concrete_function()
    step = StackedStep([flatten_step(concrete, {id(variable.handle): "x"})] * COUNT)

    @tf.function(autograph=False)
    def together(stack: Any) -> Any:
        (out,), _ = step.run((), {"x": MemberValue(COUNT, stacked=stack)})
        return out.stack()

    found = together(tf.constant(values))
    for number in range(COUNT):
        variable.assign(values[number])
        np.testing.assert_array_equal(found[number], alone())


def test_a_step_becomes_values_in_and_values_out() -> None:
    variable = tf.Variable([1.0, 2.0])

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        variable.assign_add(x)
        return variable.assign(variable * 2.0).read_value() + 1.0

    flat = flatten_step(step.get_concrete_function(tf.TensorSpec([2])), {id(variable.handle): "v"})
    assert (list(flat.reads), list(flat.updates), len(flat.batch)) == (["v"], ["v"], 1)


def test_effects_cannot_be_flattened() -> None:
    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        tf.print(x)
        return x

    with pytest.raises(NotFlat, match="has effects"):
        flatten_step(step.get_concrete_function(tf.TensorSpec([2])), {})
