"""What is computed of parts and added up: shares, rows of tables, state, parts that are shorter."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor
from stoker.train.execution.parts import Computed, Cut, PartSize, add_up, own_floats, slopes_of

X = np.arange(20, dtype="float32").reshape(10, 2)


def size_of(parts: int, rows: int | None) -> PartSize:
    size = PartSize()
    size.assign(Cut(parts, rows))
    return size


@pytest.mark.parametrize(
    ("parts", "rows", "lengths"), [(3, 10, [4, 4, 2]), (4, None, [3, 3, 3, 1]), (1, 10, [10])]
)
@pytest.mark.parametrize("compiled", [False, True])
def test_means_of_parts_are_the_mean_of_the_batch(
    parts: int, rows: int | None, lengths: list[int], compiled: bool
) -> None:
    size = size_of(parts, rows)

    def compute(part: Tensor, share: Tensor, _: Tensor) -> Computed:
        return Computed([tf.reduce_mean(part["x"]) * share, None, tf.ones([])], [part["x"]])

    @tf.function
    def run(x: Tensor) -> Any:
        done = add_up({"x": x, "none": None}, size, compute, joined=True, compiled=compiled)
        return done.added, done.seen

    (mean, nothing, count), seen = run(X)
    assert float(mean) == pytest.approx(X.mean())
    assert nothing is None
    assert int(count) == len(lengths)
    np.testing.assert_array_equal(seen[0], X)


def test_a_smaller_batch_has_fewer_parts_of_the_same_size() -> None:
    size, seen = size_of(3, 10), tf.Variable(0)

    @tf.function
    def run(x: Tensor) -> None:
        add_up(x, size, lambda part, *_: Computed([tf.reduce_sum(part)]), note=lambda *_: seen.assign_add(1))

    for rows, parts in ((10, 3), (5, 2), (4, 1), (0, 0)):
        seen.assign(0)
        run(tf.ones([rows, 2]))
        assert int(seen) == parts


def test_gradients_of_some_rows_stay_apart_as_in_a_whole_batch() -> None:
    table, words = (
        tf.Variable(tf.random.normal([6, 3])),
        tf.constant([[1, 2], [2, 2], [5, 0], [2, 1], [3, 3]]),
    )

    def compute(part: Tensor, share: Tensor, _: Tensor) -> Computed:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.gather(table, part) ** 2) * share
        return Computed(slopes_of(tape, loss, [table]))

    def whole(part: Tensor) -> Any:
        return compute(part, tf.ones([]), tf.zeros([0])).added[0]

    size = size_of(2, 5)
    found = tf.function(lambda: add_up(words, size, compute).added[0])()
    expected = whole(words)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
    np.testing.assert_array_equal(found.dense_shape, [6, 3])


def test_the_sum_of_16_bits_is_kept_in_32() -> None:
    size = size_of(1024, 1024)

    def compute(part: Tensor, *_: Tensor) -> Computed:
        return Computed([tf.cast(tf.reduce_sum(part), tf.bfloat16)])

    found = tf.function(lambda: add_up(tf.ones([1024]), size, compute).added[0])()
    assert found.dtype == tf.bfloat16
    # In 16 bits it would stop at 256.
    assert float(found) == 1024


def test_own_state_moves_once_by_the_mean() -> None:
    layer = keras.layers.BatchNormalization(momentum=0.9)
    layer.build((None, 2))
    model = keras.Sequential([layer])
    state, size = own_floats([model]), size_of(3, 9)

    def compute(part: Tensor, *_: Tensor) -> Computed:
        return Computed([tf.reduce_sum(layer(part, training=True))])

    tf.function(lambda: add_up(tf.constant(X[:9]), size, compute, state=state).added[0])()
    # The mean is that of the whole batch; the variance is the mean of those within the parts.
    np.testing.assert_allclose(layer.moving_mean, 0.1 * X[:9].mean(0), rtol=1e-5)
    within = np.mean([X[start : start + 3].var(0) for start in (0, 3, 6)], 0)
    np.testing.assert_allclose(layer.moving_variance, 0.9 + 0.1 * within, rtol=1e-5)


def test_what_has_no_rows_is_refused() -> None:
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])

    @tf.function(autograph=False)
    def run() -> None:
        add_up(ragged, size_of(2, 2), lambda *_: Computed([]))

    with pytest.raises(ArgumentError, match="sparse or ragged: a batch of it cannot be cut into parts"):
        run.get_concrete_function()
