"""The mean of a text's embeddings by one kernel."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.train.execution import fused_layers
from tests.train.execution.test_fused_adam import operations
from tests.train.execution.test_fused_update import WIDTH, WORDS, model, texts

pytestmark = pytest.mark.tensorflow

SUM = "SparseSegmentSumWithNumSegments"
# Padding at the end and in between, words that come again, numbers from the end.
IDS = [[3, 4, 3, 0, 0], [5, 0, 5, 5, 7], [-1, 2, -3, 4, 9]]


def means(*, mask: bool = True, also: Any = None, **options: Any) -> Any:
    """Means of embeddings; `also`: another layer that takes the same embeddings."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int32")
    rows = keras.layers.Embedding(WORDS, WIDTH, mask_zero=mask)(ids)
    mean = keras.layers.GlobalAveragePooling1D(**options)(rows)
    return keras.Model(ids, mean if also is None else [mean, also(rows)])


def answered(learner: Any, *, fused: bool) -> tuple[list[Any], Any, int]:
    """The answers, the gradient of the table, and how many means were fused."""
    count = 0

    @tf.function
    def run() -> Any:
        with tf.GradientTape() as tape:
            found = tf.nest.flatten(learner(tf.constant(IDS)))
            loss = tf.add_n([tf.reduce_sum(tf.sin(one)) for one in found])
        return found, tf.convert_to_tensor(tape.gradient(loss, learner.trainable_variables[0].value))

    if fused:
        with fused_layers.fuse_means(learner):
            concrete = run.get_concrete_function()
        count = sum(op.type == SUM for op in concrete.graph.get_operations())
    found, gradient = run()
    return [one.numpy() for one in found], gradient.numpy(), count


@pytest.mark.parametrize(
    "learner",
    [
        lambda: means(),
        lambda: means(mask=False),
        lambda: means(also=keras.layers.GlobalMaxPooling1D()),
        lambda: means(also=keras.layers.GlobalAveragePooling1D()),
    ],
    ids=["masked", "whole", "with a maximum", "with another mean"],
)
def test_answers_and_gradients_are_those_of_keras(learner: Any) -> None:
    made = learner()
    assert fused_layers.averages_embeddings(made)
    usual, gradient, _ = answered(made, fused=False)
    found, same, count = answered(made, fused=True)
    assert count >= 1
    for one, other in zip(usual, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(same, gradient, rtol=1e-5, atol=1e-7)
    assert not any("call" in vars(layer) for layer in made.layers)


def test_of_padding_alone_there_is_no_mean() -> None:
    made = means()
    with fused_layers.fuse_means(made):
        found = made(tf.constant([[3, 4], [0, 0]]))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_words_that_are_no_plain_array_are_left_to_keras() -> None:
    ids = keras.Input((None,), dtype="int32", sparse=True)
    rows = keras.layers.Embedding(WORDS, WIDTH)(ids)
    made = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(rows))
    assert not fused_layers.averages_embeddings(made)
    words = tf.sparse.from_dense([[1, 2], [3, 0]])
    usual = made(words)
    with fused_layers.fuse_means(made):
        np.testing.assert_array_equal(made(words), usual)


@pytest.mark.parametrize(
    "learner",
    [
        lambda: means(keepdims=True),
        lambda: means(mask=False, data_format="channels_first"),
        lambda: means(dtype="float16"),
    ],
)
def test_what_the_kernel_does_not_compute_is_left_to_keras(learner: Any) -> None:
    made = learner()
    assert not fused_layers.averages_embeddings(made)
    usual, gradient, _ = answered(made, fused=False)
    found, same, count = answered(made, fused=True)
    assert count == 0
    np.testing.assert_array_equal(found[0], usual[0])
    np.testing.assert_array_equal(same, gradient)


def test_a_gradient_that_was_changed_on_its_way_is_one_for_each_word() -> None:
    usual, fused = (model(keras.optimizers.Adam(1e-2, clipnorm=0.01)) for _ in range(2))
    stoker.fit(usual, texts(), epochs=3, plan="unfused", verbose=0)
    plan = stoker.fit(fused, texts(), epochs=3, verbose=0).plan
    assert (operations(usual, SUM), operations(fused, SUM)) == (0, 1)
    assert operations(fused, "SparseSegmentSumGrad") == 0
    assert "the mean of embeddings runs in one kernel" in plan.line()
    for one, other in zip(usual.weights, fused.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5, err_msg=one.path)


def test_where_keras_updates_it_also_takes_the_mean() -> None:
    learner = model("sgd")
    stoker.fit(learner, texts(), epochs=1, plan="fused", verbose=0)
    assert operations(learner, SUM) == 0
