"""The optimizer's update of large variables, compiled by XLA: one pass over memory in place of one for each op.

Adam does some ten things to every weight at every step, also to the rows of a table of embeddings that no word of the
batch has. On a processor that takes as long as the memory needs, and it can be compiled by itself where the step
cannot: with text, lengths that change, masks that XLA would draw otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

# Those whose update looks at each weight alone, in several ops, and keeps nothing for all variables (Nadam does).
_OPTIMIZERS = (
    keras.optimizers.Adam,
    keras.optimizers.AdamW,
    keras.optimizers.Adamax,
    keras.optimizers.RMSprop,
    keras.optimizers.Lion,
)
# Smaller ones are in the processor's caches, whichever way.
_LARGE = 1 << 16
# Weights times steps: about a nanosecond of each is saved, and compiling takes half a second.
_LEAST_WORK = 2_000_000_000


def refusal(model: Any, steps: int) -> str | None:
    """Why it is not worth it for so many steps, or cannot be done; None if it is."""
    if type(model.optimizer) not in _OPTIMIZERS:
        return f"{type(model.optimizer).__name__} is not compiled by itself"
    if not model.built:
        return "the model has no weights yet"
    if any(device.device_type != "CPU" for device in tf.config.list_physical_devices()):
        return "this has been measured on processors only"
    weights = sum(_size(variable) for variable in model.trainable_variables if _size(variable) >= _LARGE)
    if weights * steps < _LEAST_WORK:
        return f"{weights:,} weights of large variables are too few"
    return None


@contextmanager
def fused(optimizer: Any) -> Iterator[None]:
    """What is traced inside has the optimizer's update of large variables compiled."""
    plain = optimizer._backend_update_step

    def update(gradients: Sequence[Any], variables: Sequence[Any], rate: Any) -> None:
        pairs = list(zip(gradients, variables, strict=True))
        large = [(_dense(gradient), one) for gradient, one in pairs if _size(one) >= _LARGE]
        small = [pair for pair in pairs if _size(pair[1]) < _LARGE]
        if small:
            plain(*map(list, zip(*small, strict=True)), rate)
        if large:

            @tf.function(autograph=False, jit_compile=True)  # type: ignore[untyped-decorator]
            def compiled(given: list[Any]) -> None:
                plain(given, [variable for _, variable in large], rate)

            compiled([gradient for gradient, _ in large])

    optimizer._backend_update_step = update
    try:
        yield
    finally:
        del optimizer._backend_update_step


def _size(variable: Any) -> int:
    return int(tf.TensorShape(variable.shape).num_elements() or 0)


def _dense(gradient: Any) -> Any:
    """Of a table: the rows that are there, added up. XLA would compile anew for each number of them."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, gradient.dense_shape[0])
