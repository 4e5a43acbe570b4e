"""The optimizer's update with fewer passes over memory: Adam's runs as one kernel, XLA compiles others.

Keras 3 computes Adam with some fourteen ops. Six of them pass over every weight, even over the rows of a table of
embeddings for words that the batch does not have. For small variables, most of the time goes into running and tracing
the ops themselves. TensorFlow's kernel is one op per variable.

RMSprop and similar optimizers also do several things to every weight at every step. On a processor, memory bounds that
time. XLA can compile this update by itself even if it cannot compile the step: with text, changing lengths, or masks
that XLA would draw differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.keras_optimizers import Update, slots_of_adam, update_replaced
from stoker.tf_internals.types import Layer, Model, Optimizer, Tensor, Variable
from stoker.train.execution.fused_layers import SharedRows

# Smaller variables fit into the processor's caches, whichever way they are updated.
LARGE = 1 << 16


def on_processors() -> bool:
    """Return whether there are only CPUs, on which this was measured: on a GPU, XLA fuses."""
    return all(device.device_type == "CPU" for device in tf.config.list_physical_devices())


def size_of(variable: Variable) -> int:
    """Return the number of weights in a variable."""
    return int(tf.TensorShape(variable.shape).num_elements() or 0)


# `AdamW` decays the weights first, and then does what Adam does.
_ADAM = (keras.optimizers.Adam, keras.optimizers.AdamW)


def is_plain_adam(optimizer: Optimizer) -> bool:
    """Return whether the kernel computes exactly what this optimizer does."""
    return (
        type(optimizer) in _ADAM
        and not optimizer.amsgrad
        and min(optimizer.beta_1, optimizer.beta_2) > 0
        # With accumulation, Keras first looks at the update without variables.
        and not optimizer.gradient_accumulation_steps
        and "update_step" not in vars(optimizer)
    )


@contextmanager
def fuse_adam(optimizer: Optimizer, worth_it: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Have steps traced within the block update variables with the kernel, if that is worth it."""
    plain = optimizer.update_step

    def update_step(gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        if variable.dtype != tf.float32 or not worth_it():
            plain(gradient, variable, learning_rate)
            return
        m, v = (slot.value for slot in slots_of_adam(optimizer, variable))
        for one in (variable, m, v):
            # The graph finds its variables by their reads.
            tf.compat.v1.get_default_graph().watch_variable(one)
        if isinstance(gradient, tf.IndexedSlices):
            gradient = _add_rows(gradient, m, v, optimizer)
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


def _add_rows(gradient: tf.IndexedSlices, m: tf.Variable, v: tf.Variable, optimizer: Optimizer) -> tf.Tensor:
    """Add the gradients of some rows of a table to `m` and `v`, so that the kernel sees a gradient of zeros.

    The kernel shrinks both, so the added values are enlarged by as much beforehand. This needs no gradient for all
    rows. If a batch has a row several times, `v` gets the sum of the squares, as in Keras, not the square of the sum.
    """
    # Each row only once: rows that repeat would be added in any order.
    rows, place = tf.unique(gradient.indices)
    sums, squares = _sums(gradient, place, tf.size(rows))
    for one, added, beta in ((m, sums, optimizer.beta_1), (v, squares, optimizer.beta_2)):
        tf.raw_ops.ResourceScatterAdd(resource=one.handle, indices=rows, updates=added * ((1 - beta) / beta))
        # Otherwise every op that updates the whole variable would copy it, because rows were added to it.
        tf.raw_ops.DisableCopyOnRead(resource=one.handle)
    with tf.init_scope():
        return tf.zeros(v.shape)


def _sums(gradient: tf.IndexedSlices, place: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of the gradients that have the same place, and of their squares."""
    if isinstance(gradient, SharedRows):
        each = gradient.of_texts
        return gradient.summed(each, place, count), gradient.summed(tf.square(each), place, count)
    values = tf.cast(gradient.values, tf.float32)
    return (
        tf.math.unsorted_segment_sum(values, place, count),
        tf.math.unsorted_segment_sum(tf.square(values), place, count),
    )


# Optimizers whose update treats each weight alone, in several ops, and keeps no value shared by all variables (Nadam
# keeps one).
_OPTIMIZERS = (
    keras.optimizers.Adam,
    keras.optimizers.AdamW,
    keras.optimizers.Adamax,
    keras.optimizers.RMSprop,
    keras.optimizers.Lion,
)
# Weights times steps. About a nanosecond is saved for each, and compiling takes half a second.
_LEAST_WORK = 2_000_000_000


def refusal(model: Model, steps: int) -> str | None:
    """Return why the update cannot be compiled, or should not be for this many steps; None if it should be."""
    if type(model.optimizer) not in _OPTIMIZERS:
        return f"{type(model.optimizer).__name__} is not compiled by itself"
    if not model.built:
        return "the model has no weights yet"
    if not on_processors():
        return "this has been measured only on CPUs"
    tables = {id(one) for layer in layers_of(model) if _is_table(layer) for one in layer.weights}
    sizes = (size_of(one) for one in model.trainable_variables if id(one) not in tables)
    weights = sum(size for size in sizes if size >= LARGE)
    if weights * steps < _LEAST_WORK:
        return f"{weights:,} weights of large variables are too few"
    return None


def _is_table(layer: Layer) -> bool:
    """Return whether the gradients of a layer's weights cover only some rows."""
    return isinstance(layer, keras.layers.Embedding)


def _is_worth_compiling(gradient: Tensor, variable: Variable) -> bool:
    # For a gradient of some rows, XLA would compile an update for each number of rows. As a dense gradient, rows would
    # be summed before they are squared, which Keras does not do.
    return size_of(variable) >= LARGE and not isinstance(gradient, tf.IndexedSlices)


def compile_update(optimizer: Optimizer) -> AbstractContextManager[None]:
    """Compile the optimizer's update of large variables in steps traced within the block."""
    return update_replaced(optimizer, _compile_large)


def _compile_large(plain: Update) -> Update:
    def update(gradients: Sequence[Tensor], variables: Sequence[Variable], rate: Tensor) -> None:
        pairs = list(zip(gradients, variables, strict=True))
        large = [pair for pair in pairs if _is_worth_compiling(*pair)]
        others = [pair for pair in pairs if not _is_worth_compiling(*pair)]
        if others:
            plain(*map(list, zip(*others, strict=True)), rate)
        if large:

            def update_large(given: list[Tensor]) -> None:
                plain(given, [variable for _, variable in large], rate)

            compiled = tf.function(update_large, autograph=False, jit_compile=True)
            compiled([gradient for gradient, _ in large])

    return update
