"""Adam's update by TensorFlow's own kernel: one op a variable, and one pass over memory.

Keras 3 writes it as some fourteen ops, of which six go over every weight, also over the rows of a table of embeddings
that no word of the batch has. Of small variables the ops themselves are what takes the time, and tracing them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

# `AdamW` decays the weights before, and is Adam then.
_OPTIMIZERS = (keras.optimizers.Adam, keras.optimizers.AdamW)


def applies(optimizer: Any) -> bool:
    """Whether the kernel computes what this optimizer does."""
    return (
        type(optimizer) in _OPTIMIZERS
        and not optimizer.amsgrad
        and optimizer.beta_2 > 0
        # Keras then looks at the update first, without variables.
        and not optimizer.gradient_accumulation_steps
        and "update_step" not in vars(optimizer)
    )


@contextmanager
def fused(optimizer: Any) -> Iterator[None]:
    """What is traced inside has the kernel update the variables."""
    plain = optimizer.update_step

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        if variable.dtype != tf.float32:
            plain(gradient, variable, learning_rate)
            return
        number = optimizer._get_variable_index(variable)
        m, v = optimizer._momentums[number].value, optimizer._velocities[number].value
        for one in (variable, m, v):
            # The graph knows variables by their reads.
            tf.compat.v1.get_default_graph().watch_variable(one)
        if isinstance(gradient, tf.IndexedSlices):
            gradient = _of_table(gradient, v, optimizer.beta_2)
        step = tf.cast(optimizer.iterations.value + 1, tf.float32)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=tf.pow(optimizer.beta_1, step),
            beta2_power=tf.pow(optimizer.beta_2, step),
            lr=tf.cast(learning_rate, tf.float32),
            beta1=optimizer.beta_1,
            beta2=optimizer.beta_2,
            epsilon=optimizer.epsilon,
            grad=tf.cast(gradient, tf.float32),
        )

    optimizer.update_step = update_step
    try:
        yield
    finally:
        del optimizer.update_step


def _of_table(gradient: tf.IndexedSlices, v: tf.Variable, beta_2: float) -> tf.Tensor:
    """The gradient of all rows of a table of embeddings, of which a batch may have one many times.

    The kernel squares the sum of a row's gradients, and Keras adds up their squares. For `v` to become what it becomes
    there, the difference goes into it first, as much larger as the kernel will make it smaller.
    """
    rows, place = tf.unique(gradient.indices)
    count = tf.size(rows)
    values = tf.cast(gradient.values, tf.float32)
    sums = tf.math.unsorted_segment_sum(values, place, count)
    squares = tf.math.unsorted_segment_sum(tf.square(values), place, count)
    missing = (squares - tf.square(sums)) * ((1 - beta_2) / beta_2)
    tf.raw_ops.ResourceScatterAdd(resource=v.handle, indices=rows, updates=missing)
    return tf.math.unsorted_segment_sum(sums, rows, gradient.dense_shape[0])
