"""Adam's update by TensorFlow's kernel."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.train.execution import fused_update
from stoker.train.execution.kept import traces_of
from tests.train.execution.test_fused_update import WIDTH, WORDS, model, texts

pytestmark = pytest.mark.tensorflow


def operations(learner: Any, kind: str) -> int:
    """How many of them the traced step of training has."""
    (entry,) = traces_of(learner)._loops.values()
    return sum(op.type == kind for op in entry.loop.build().graph.get_operations())


def kernels(learner: Any) -> int:
    """How many updates by the kernel it has."""
    return operations(learner, "ResourceApplyAdam")


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.Adam(1e-2),
        lambda: keras.optimizers.Adam(1e-2, beta_1=0.8, beta_2=0.9, epsilon=1e-3, global_clipnorm=1.0),
        lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(1e-2, 2, 0.5)),
        lambda: keras.optimizers.AdamW(1e-2, weight_decay=0.1, use_ema=True, ema_momentum=0.9),
        lambda: keras.optimizers.Adam(1e-2, weight_decay=0.1, clipvalue=0.01),
    ],
)
def test_it_learns_what_keras_ops_learn(optimizer: Any) -> None:
    usual, fused = model(optimizer()), model(optimizer())
    first = stoker.fit(usual, texts(), epochs=3, plan="unfused", verbose=0).history["loss"]
    second = stoker.fit(fused, texts(), epochs=3, verbose=0).history["loss"]
    assert first == pytest.approx(second, rel=1e-4)
    assert (kernels(usual), kernels(fused)) == (0, 5)
    assert "update_step" not in vars(fused.optimizer)
    for one, other in zip(usual.optimizer.variables, fused.optimizer.variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5, err_msg=one.path)
    for one, other in zip(usual.weights, fused.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, err_msg=one.path)


def the_largest(optimizer: Any) -> Any:
    """A network in which the words of a text have different gradients."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int64")
    x = keras.layers.GlobalMaxPooling1D()(keras.layers.Embedding(WORDS, WIDTH)(ids))
    made = keras.Model(ids, keras.layers.Dense(3, activation="softmax")(x))
    made.compile(optimizer, "sparse_categorical_crossentropy")
    return made


def test_words_of_different_gradients_learn_what_they_learn_by_keras_ops() -> None:
    usual, fused = the_largest("adam"), the_largest("adam")
    stoker.fit(usual, texts(), epochs=3, plan="unfused", verbose=0)
    stoker.fit(fused, texts(), epochs=3, verbose=0)
    assert (kernels(usual), kernels(fused)) == (0, 3)
    for one, other in zip(usual.weights, fused.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5, err_msg=one.path)


@pytest.mark.parametrize("learner_of", [model, the_largest])
def test_words_that_come_again_and_again_are_added_in_one_order(learner_of: Any) -> None:
    """From a thousand rows on, TensorFlow scatters them in parallel."""
    draw = np.random.default_rng(0)
    words, classes = draw.integers(1, 20, (64, 40)), draw.integers(0, 3, 64)
    data = tf.data.Dataset.from_tensors((words, classes)).repeat(10)

    def bits() -> bytes:
        learner = learner_of("adam")
        stoker.fit(learner, data, epochs=1, plan="fused", verbose=0)
        return b"".join(np.asarray(one).tobytes() for one in learner.optimizer.variables)

    assert len({bits() for _ in range(4)}) == 1


class Halved(keras.optimizers.Adam):
    """An optimizer of one's own."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super().update_step(gradient, variable, learning_rate / 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer",
    [
        Halved(),
        keras.optimizers.Adam(amsgrad=True),
        keras.optimizers.Adam(gradient_accumulation_steps=2),
        "sgd",
        "nadam",
    ],
)
def test_what_is_not_quite_adam_is_left_to_keras(optimizer: Any) -> None:
    learner = model(optimizer)
    assert not fused_update.is_plain_adam(learner.optimizer)
    stoker.fit(learner, texts(), epochs=1, plan="fused", verbose=0)
    assert kernels(learner) == 0


def test_the_graph_knows_the_variables() -> None:
    """Or a trial of XLA could not put them back."""
    learner = model("adam")
    stoker.fit(learner, texts(), epochs=1, verbose=0)
    (entry,) = traces_of(learner)._loops.values()
    known = {variable.ref() for variable in entry.loop.build().graph.variables}
    assert {one.value.ref() for one in (*learner.optimizer.variables, *learner.weights)} <= known


def test_the_plan_says_so() -> None:
    plan = stoker.fit(model("adam"), texts(), epochs=1, verbose=0).plan
    assert plan.fused
    assert "the update runs in one kernel" in plan.line()
    assert not stoker.fit(model("sgd"), texts(), epochs=1, verbose=0).plan.fused


@pytest.mark.parametrize("plan", [None, "fused"])
def test_a_small_network_keeps_the_bits_of_keras(plan: str | None) -> None:
    small = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    small.compile("adam", "mse")
    x: Any = np.ones((4, 3), "float32")
    fused = stoker.fit(small, x, x[:, :2], epochs=1, plan=plan, verbose=0).plan.fused
    assert fused == (plan == "fused")
    assert kernels(small) == 0


def test_large_variables_the_kernel_does_not_update_are_no_reason_to_use_it() -> None:
    """It updates float32 alone."""
    learner = keras.Sequential(
        [keras.Input((256,)), keras.layers.Dense(256, dtype="float64"), keras.layers.Dense(1)]
    )
    learner.compile("adam", "mse")
    x: Any = np.ones((4, 256), "float32")
    assert not stoker.fit(learner, x, x[:, :1], epochs=1, verbose=0).plan.fused
    assert kernels(learner) == 0
