"""Names of state: complete, unique, the same in another process and for a model built later in this one."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.train.checkpoint.options import CheckpointError
from stoker.train.execution.feed import host_random_state, restore_host_random_state
from stoker.train.variables import (
    find_unsavable_random_ops,
    named_variables,
)

X = np.random.default_rng(0).random((32, 4), np.float32)
Y = X.sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def policy() -> Iterator[None]:
    yield
    keras.mixed_precision.set_global_policy("float32")


def nested() -> Any:
    inner = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(8),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
        ]
    )
    return keras.Sequential(
        [keras.Input((4,)), inner, keras.layers.GaussianNoise(0.1), keras.layers.Dense(1)]
    )


def trained(model: Any, optimizer: Any) -> Any:
    model.compile(optimizer, "mse", metrics=["mae"], run_eagerly=True)
    model.train_on_batch(X, Y)
    return model


def every_variable(model: Any) -> set[int]:
    everything = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    return {id(variable.value) for variable in everything}


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.Adam(use_ema=True),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9, gradient_accumulation_steps=2),
        lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()),
    ],
)
def test_complete_unique_and_independent_of_numbering(optimizer: Any) -> None:
    model = trained(nested(), optimizer())
    found = named_variables(model)
    assert list(found) == list(named_variables(trained(nested(), optimizer())))
    identities = [id(variable) for variable in found.values()]
    assert len(identities) == len(set(identities))
    assert every_variable(model) <= set(identities)
    assert all(isinstance(variable, tf.Variable) for variable in found.values())


def test_names_say_where() -> None:
    names = list(named_variables(trained(nested(), "adam")))
    assert "model/1-Sequential/1-Dense/0.kernel" in names
    assert "model/1-Sequential/2-BatchNormalization/2.moving_mean" in names
    assert "model/1-Sequential/3-Dropout/seed0" in names
    assert "model/2-GaussianNoise/seed0" in names
    assert "optimizer-Adam/0" in names
    assert "metrics/0.total" in names
    assert "keras.random" in names


def test_loss_scale_and_its_counter_are_in() -> None:
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = trained(nested(), keras.optimizers.Adam())
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"
    identities = {id(variable) for variable in named_variables(model).values()}
    assert id(model.optimizer.dynamic_scale.value) in identities
    assert id(model.optimizer.step_counter.value) in identities


def test_an_optimizer_that_was_never_used_is_built_first() -> None:
    model = nested()
    model.compile("adam", "mse")
    fresh = named_variables(model)
    model.fit(X, Y, verbose=0)
    assert set(fresh) <= set(named_variables(model))
    assert sum(name.startswith("optimizer-Adam/") for name in fresh) == 2 + 2 * len(model.trainable_variables)


class Custom(keras.Model):
    """State in all the places where people put it."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.heads = [keras.layers.Dense(1), keras.layers.Dense(1)]
        self.seen = tf.Variable(0, dtype=tf.int64)
        self.own = keras.Variable(1.0)
        self.generator = tf.random.Generator.from_seed(1)
        self.second_optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        self.average = keras.metrics.Mean()
        self.counters = {"a": tf.Variable(0.0), "b": tf.Variable(1.0)}
        self.several = [keras.optimizers.Adam()]

    def call(self, inputs: Any) -> Any:
        outputs = self.dense(inputs)
        return outputs + self.heads[0](inputs) + self.heads[1](inputs)


def custom() -> Any:
    model = Custom()
    model.compile("adam", "mse")
    model(X)
    model.second_optimizer.build(model.trainable_variables)
    return model


def test_what_hangs_on_a_model_is_found() -> None:
    model = custom()
    found = named_variables(model)
    identities = {id(variable) for variable in found.values()}
    expected = [model.seen, model.own.value, model.generator.state, *model.counters.values()]
    expected += [
        v.value for v in model.second_optimizer.variables + model.average.variables + model.variables
    ]
    expected += [v.value for v in model.several[0].variables]
    assert {id(variable) for variable in expected} <= identities
    assert list(found) == list(named_variables(custom()))


def test_shared_layers_are_named_once() -> None:
    shared = keras.layers.Dense(4)
    model = keras.Sequential([keras.Input((4,)), shared, shared])
    assert sum("kernel" in name for name in named_variables(model)) == 1


def test_extra_variables_are_added() -> None:
    counter = tf.Variable(3)
    assert named_variables(nested(), extra={"spikes": counter})["extra/spikes"] is counter


def test_a_model_without_weights_is_refused() -> None:
    with pytest.raises(CheckpointError, match="has no weights yet: build it or call it on a batch"):
        named_variables(keras.Sequential([keras.layers.Dense(2)], name="mine"))


def test_asking_draws_no_random_numbers() -> None:
    keras.utils.set_random_seed(5)
    model = nested()
    before = random.getstate()
    named_variables(model)
    assert random.getstate() == before


@pytest.mark.slow
def test_copies_are_one_variable_and_parts_are_several() -> None:
    """In a process of its own, since devices are divided before TensorFlow starts."""
    program = """
import keras, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from stoker.train.execution.feed import host_random_state, restore_host_random_state
from stoker.train.variables import named_variables
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
found = named_variables(model)
kernel = model.layers[0].kernel.value
found["model/1-Dense/0.kernel"].assign([[1.0]] * 4)
print([copy.numpy().tolist() for copy in kernel.values])
print(sorted(name for name in found if name.startswith("metrics")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    copies, parts = done.stdout.splitlines()
    assert copies == str([[[1.0]] * 4] * 2)
    assert parts == str(["metrics/0.total", "metrics/0.total@1", "metrics/1.count", "metrics/1.count@1"])


def test_python_and_numpy_generators_go_back() -> None:
    random.seed(1)
    np.random.seed(1)
    random.gauss(0, 1)
    state = host_random_state()
    drawn = [random.random(), random.gauss(0, 1), np.random.normal()]
    restore_host_random_state(state)
    assert [random.random(), random.gauss(0, 1), np.random.normal()] == drawn


def test_random_ops_that_cannot_be_resumed_are_seen() -> None:
    @tf.function
    def noisy(x: tf.Tensor) -> tf.Tensor:
        return tf.map_fn(lambda row: row + tf.random.normal([]), x)

    @tf.function
    def fine(x: tf.Tensor) -> tf.Tensor:
        return x + tf.random.stateless_normal([], [1, 2])

    spec = tf.TensorSpec([3], tf.float32)
    assert find_unsavable_random_ops(noisy.get_concrete_function(spec).graph) == ["RandomStandardNormal"]
    assert find_unsavable_random_ops(fine.get_concrete_function(spec).graph) == []
