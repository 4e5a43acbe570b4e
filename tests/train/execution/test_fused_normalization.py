"""Batch normalisation by the fused kernel."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.train.execution.fused_layers import normalizes_images
from stoker.train.execution.kept import traces_of
from stoker.train.planning import decide
from stoker.train.program import StepLoops
from stoker.train.workers.group import Group
from tests.train import plain
from tests.train.execution.test_fused_adam import operations

pytestmark = pytest.mark.tensorflow


def images(rows: int = 24) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    return draw.normal(1.0, 2.0, (rows, 8, 8, 3)).astype("float32"), draw.integers(0, 3, rows)


def network(normalization: Any = keras.layers.BatchNormalization, **options: Any) -> Any:
    keras.utils.set_random_seed(0)
    given = keras.Input((8, 8, 3))
    x = normalization(**{"momentum": 0.8, **options})(keras.layers.Conv2D(4, 3)(given))
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.Activation("relu")(x))
    made = keras.Model(given, keras.layers.Dense(3, activation="softmax")(x))
    made.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    return made


def kernels(model: Any) -> int:
    """How many fused normalisations the traced step of training has."""
    (entry,) = traces_of(model)._loops.values()
    return sum(op.type == "FusedBatchNormV3" for op in entry.loop.build().graph.get_operations())


def test_xla_compiles_the_kernel_to_the_same() -> None:
    x, y = images()
    usual, fused = network(), network()
    for model, plan in ((usual, "unfused, none"), (fused, "fused, loop")):
        stoker.fit(model, x, y, batch_size=12, epochs=2, shuffle=False, plan=plan, verbose=0)
    for one, other in zip(usual.weights, fused.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, err_msg=one.path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 1e-6, "momentum": 0.99},
        {"scale": False},
        {"center": False},
        {"axis": 3, "gamma_regularizer": "l2"},
        {"trainable": False, "moving_mean_initializer": "ones"},
    ],
)
def test_it_learns_what_keras_ops_learn(options: dict[str, Any]) -> None:
    x, y = images()
    usual, fused = network(**options), network(**options)
    for model, plan in ((usual, "unfused"), (fused, "fused")):
        # The last batch of an epoch is a smaller one.
        stoker.fit(model, x, y, batch_size=10, epochs=3, shuffle=False, plan=plan, verbose=0)
    assert (kernels(usual), kernels(fused)) == (0, 1)
    for one, other in zip(usual.weights, fused.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=one.path)
    np.testing.assert_allclose(usual.predict(x, verbose=0), fused.predict(x, verbose=0), rtol=1e-4, atol=1e-5)


def test_one_value_a_channel_has_no_variance() -> None:
    x, y = images(1)
    given = keras.Input((1, 1, 3))
    made = keras.Model(given, keras.layers.Flatten()(keras.layers.BatchNormalization(momentum=0.5)(given)))
    made.compile("sgd", "sparse_categorical_crossentropy")
    stoker.fit(made, x[:, :1, :1], y, epochs=1, plan="fused", verbose=0)
    np.testing.assert_allclose(made.layers[1].moving_variance, 0.5)


class Louder(keras.layers.BatchNormalization):
    """A layer of one's own."""

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        return 2 * super().call(inputs, training=training, mask=mask)


def sequences() -> Any:
    given = keras.Input((8, 3))
    x = keras.layers.Flatten()(keras.layers.BatchNormalization()(given))
    made = keras.Model(given, keras.layers.Dense(3, activation="softmax")(x))
    made.compile("sgd", "sparse_categorical_crossentropy")
    return made


@pytest.mark.parametrize(
    "model",
    [
        lambda: network(Louder),
        lambda: network(axis=1),
        lambda: network(synchronized=True),
        lambda: network(dtype="mixed_bfloat16"),
        sequences,
    ],
)
def test_where_the_kernel_computes_something_else_keras_does_it(model: Any) -> None:
    learner = model()
    x, y = images()
    given = x if len(learner.input_shape) == 4 else x[:, 0]
    stoker.fit(learner, given, y, plan="fused", verbose=0)
    assert kernels(learner) == 0


class Stack(keras.Model):
    """Built by its first batch."""

    def __init__(self, *stack: Any) -> None:
        super().__init__()
        self.stack = stack

    def call(self, inputs: Any, training: bool = False) -> Any:
        for layer in self.stack:
            inputs = layer(inputs, training=training) if layer.name.startswith("batch") else layer(inputs)
        return inputs


def of_rows(unbuilt: bool) -> Any:
    keras.utils.set_random_seed(0)
    stack = [keras.layers.Dense(16), keras.layers.BatchNormalization(), keras.layers.Dense(3)]
    made = Stack(*stack) if unbuilt else keras.Sequential([keras.Input((3,)), *stack])
    made.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("unbuilt", [False, True])
def test_rows_of_a_table_are_normalised_and_updated_with_the_bits_of_keras(unbuilt: bool) -> None:
    x, y = images()
    usual, learner = of_rows(unbuilt), of_rows(unbuilt)
    usual.fit(x[:, 0, 0], y, batch_size=10, epochs=3, shuffle=False, verbose=0)
    plan = stoker.fit(learner, x[:, 0, 0], y, batch_size=10, epochs=3, shuffle=False, verbose=0).plan
    assert ("in one kernel" in plan.line()) == unbuilt
    for one, other in zip(usual.weights, learner.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
    # Once it is built, the plan knows.
    assert not stoker.fit(learner, x[:, 0, 0], y, verbose=0).plan.fused


def test_images_are_found_out_when_the_model_is_built() -> None:
    learner = Stack(keras.layers.BatchNormalization(), keras.layers.Flatten(), keras.layers.Dense(3))
    learner.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    plan = stoker.fit(learner, *images(), verbose=0).plan
    assert "in one kernel if it turns out to be of images" in plan.line()
    assert (kernels(learner), operations(learner, "ResourceApplyAdam")) == (1, 4)
    again = stoker.fit(learner, *images(), verbose=0).plan
    assert {"batch normalisation runs in one kernel", "the update runs in one kernel"} <= set(again.reasons)


def test_the_layers_are_left_as_they_were() -> None:
    learner = network()
    stoker.fit(learner, *images(), plan="fused", verbose=0)
    assert all("call" not in vars(layer) for layer in learner.layers)


def test_the_plan_says_so() -> None:
    plan = stoker.fit(network(), *images(), epochs=1, verbose=0).plan
    assert plan.fused
    assert "batch normalisation runs in one kernel" in plan.line()
    assert not stoker.fit(network(), *images(), epochs=1, plan="unfused", verbose=0).plan.fused
    assert not normalizes_images(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))


def test_a_loop_of_ones_own_is_not_fused() -> None:
    learner = network()
    trainer = stoker.Trainer(learner, learner.optimizer, plain.squared)
    with pytest.raises(ArgumentError, match=r"fused=True is for stoker\.fit"):
        trainer.fit(tf.data.Dataset.from_tensor_slices(images()).batch(8), epochs=1, plan="fused", verbose=0)


def test_replicas_go_on_without_what_one_had() -> None:
    several = StepLoops(None, Group())
    several.replicated = True
    plan = decide.choose_fusing(several, stoker.Plan(fused=True))
    assert not plan.fused
    assert plan.reasons == ("no fused kernels under a strategy",)


def test_a_run_goes_on_as_it_began(tmp_path: Any) -> None:
    first = stoker.fit(network(), *images(), epochs=1, checkpoint=tmp_path, plan="unfused", verbose=0)
    assert not first.plan.fused
    assert not stoker.fit(network(), *images(), epochs=2, checkpoint=tmp_path, verbose=0).plan.fused
