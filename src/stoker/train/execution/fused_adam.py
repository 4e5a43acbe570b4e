"""Adam's update by TensorFlow's own kernel: one op a variable, and one pass over memory.

Keras 3 writes it as some fourteen ops, of which six go over every weight, also over the rows of a table of embeddings
that no word of the batch has. Of small variables the ops themselves are what takes the time, and tracing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from stoker.tf_internals.keras_optimizers import slots_of_adam
from stoker.tf_internals.types import Optimizer, Tensor, Variable
from stoker.train.execution.fused_means import SharedRows

# `AdamW` decays the weights before, and is Adam then.
_OPTIMIZERS = (keras.optimizers.Adam, keras.optimizers.AdamW)


def applies(optimizer: Optimizer) -> bool:
    """Whether the kernel computes what this optimizer does."""
    return (
        type(optimizer) in _OPTIMIZERS
        and not optimizer.amsgrad
        and min(optimizer.beta_1, optimizer.beta_2) > 0
        # Keras then looks at the update first, without variables.
        and not optimizer.gradient_accumulation_steps
        and "update_step" not in vars(optimizer)
    )


@contextmanager
def fused(optimizer: Optimizer, worth_it: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """What is traced inside has the kernel update the variables, if it is worth it by then."""
    plain = optimizer.update_step

    def update_step(gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        if variable.dtype != tf.float32 or not worth_it():
            plain(gradient, variable, learning_rate)
            return
        m, v = (slot.value for slot in slots_of_adam(optimizer, variable))
        for one in (variable, m, v):
            # The graph knows variables by their reads.
            tf.compat.v1.get_default_graph().watch_variable(one)
        if isinstance(gradient, tf.IndexedSlices):
            gradient = _rows_first(gradient, m, v, optimizer)
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


def _rows_first(
    gradient: tf.IndexedSlices, m: tf.Variable, v: tf.Variable, optimizer: Optimizer
) -> tf.Tensor:
    """Put the gradients of some rows of a table into `m` and `v`; the kernel then finds a gradient of zeros.

    It will make both smaller, by as much as these are made larger before. So no gradient of all rows has to be made,
    and `v` gets the sum of the squares of a row that a batch has several times, as in Keras, not the square of the sum.
    """
    # Each row once: those that come again would be added in any order.
    rows, place = tf.unique(gradient.indices)
    sums, squares = _sums(gradient, place, tf.size(rows))
    for one, added, beta in ((m, sums, optimizer.beta_1), (v, squares, optimizer.beta_2)):
        tf.raw_ops.ResourceScatterAdd(resource=one.handle, indices=rows, updates=added * ((1 - beta) / beta))
        # A variable that rows were added to is otherwise copied whole by every op that updates all of it.
        tf.raw_ops.DisableCopyOnRead(resource=one.handle)
    with tf.init_scope():
        return tf.zeros(v.shape)


def _sums(gradient: tf.IndexedSlices, place: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients that have the same place, and their squares."""
    if isinstance(gradient, SharedRows):
        each = gradient.of_texts
        return gradient.summed(each, place, count), gradient.summed(tf.square(each), place, count)
    values = tf.cast(gradient.values, tf.float32)
    return (
        tf.math.unsorted_segment_sum(values, place, count),
        tf.math.unsorted_segment_sum(tf.square(values), place, count),
    )
