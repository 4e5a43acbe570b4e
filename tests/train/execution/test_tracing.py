"""Products with 1 taken out of traced steps."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.train.execution.tracing import drop_trivial_products

pytestmark = pytest.mark.tensorflow


def data() -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    return draw.normal(size=(40, 12, 12, 3)).astype("float32"), draw.normal(size=(40, 1)).astype("float32")


def efficient() -> Any:
    """A block in the style of EfficientNet, and a gated layer in the style of Llama behind it."""
    keras.utils.set_random_seed(0)
    given = keras.Input((12, 12, 3))
    x = keras.layers.Conv2D(8, 3, use_bias=False)(given)
    x = keras.layers.Activation("swish")(keras.layers.BatchNormalization()(x))
    gate = keras.layers.Dense(2, activation="silu")(keras.layers.GlobalAveragePooling2D()(x))
    gate = keras.layers.Dense(8, activation="sigmoid")(gate)
    x = keras.layers.Flatten()(x * keras.layers.Reshape((1, 1, 8))(gate))
    x = keras.layers.Dense(24, activation="silu")(x) * keras.layers.Dense(24, use_bias=False)(x)
    made = keras.Model(given, keras.layers.Dense(1)(x))
    made.compile("adam", "mse", metrics=["mae"])
    return made


def test_swish_has_the_bits_of_keras_in_training_and_out_of_it() -> None:
    """TensorFlow makes one kernel of it in Keras' steps, which rounds in its own way."""
    x, y = data()
    options: dict[str, Any] = {
        "batch_size": 12,
        "epochs": 2,
        "shuffle": False,
        "verbose": 0,
        "validation_data": (x[:20], y[:20]),
    }
    usual, learner = efficient(), efficient()
    first = usual.fit(x, y, **options).history
    assert stoker.fit(learner, x, y, plan="unfused, none", **options).history == first
    for one, other in zip(usual.weights, learner.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
    np.testing.assert_array_equal(
        usual.predict(x, batch_size=8, verbose=0), stoker.predict(learner, x, batch_size=8, verbose=0)
    )
    assert usual.evaluate(x, y, verbose=0) == stoker.evaluate(learner, x, y, verbose=0)


@pytest.mark.parametrize("steps", [2, 5])
def test_steps_per_execution_changes_no_bit_of_swish(steps: int) -> None:
    """As it does in Keras, where it makes the step the body of a loop."""
    x, y = data()
    x = x[:, 0, 0]
    options: dict[str, Any] = {"batch_size": 12, "epochs": 2, "shuffle": False, "verbose": 0}

    def gated() -> Any:
        keras.utils.set_random_seed(0)
        swish = [keras.layers.Dense(32, activation="swish") for _ in range(2)]
        made = keras.Sequential([keras.Input((3,)), *swish, keras.layers.Dense(1)])
        made.compile("adam", "mse")
        return made

    usual, learner = gated(), gated()
    learner.steps_per_execution = steps
    usual.fit(x, y, **options)
    stoker.fit(learner, x, y, plan="unfused, none", **options)
    for one, other in zip(usual.weights, learner.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)


def traced(step: Any) -> Any:
    function = tf.function(drop_trivial_products(step), autograph=False)
    return function.get_concrete_function(tf.TensorSpec([None, 3])).graph


def test_what_takes_the_product_takes_the_factor_and_waits_for_what_the_product_waited_for() -> None:
    def step(x: Any) -> Any:
        first = tf.exp(x, name="first")
        with tf.control_dependencies([first]):
            product = 1.0 * x
        return tf.sin(product, name="sine")

    sine = traced(step).get_operation_by_name("sine")
    assert sine.inputs[0].op.type == "Placeholder"
    assert [op.name for op in sine.control_inputs] == ["first"]


@pytest.mark.parametrize("factor", [2.0, np.ones((1, 3), "float32"), np.ones((2, 1, 3), "float32")])
def test_other_products_stay(factor: Any) -> None:
    graph = traced(lambda x: tf.sin(factor * x, name="sine"))
    assert graph.get_operation_by_name("sine").inputs[0].op.type == "Mul"


def test_a_product_that_is_returned_has_its_value() -> None:
    function = tf.function(drop_trivial_products(lambda x: (1.0 * x, tf.sin(x * 1.0))), autograph=False)
    product, sine = function(tf.constant([0.0, 2.0]))
    np.testing.assert_array_equal(product, [0.0, 2.0])
    np.testing.assert_array_equal(sine, np.sin(np.array([0.0, 2.0], np.float32)))
