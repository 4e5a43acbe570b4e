"""The optimizer's update of large variables, compiled by XLA: one pass over memory in place of one for each op.

RMSprop and its kin do several things to every weight at every step. On a processor that takes as long as the memory
needs, and it can be compiled by itself where the step cannot: with text, lengths that change, masks that XLA would draw
otherwise. For Adam there is `fused_adam`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.keras_optimizers import Update, update_replaced
from stoker.tf_internals.types import Layer, Model, Optimizer, Tensor, Variable
from stoker.train.execution.fused_parts import LARGE, on_processors, size_of

# Those whose update looks at each weight alone, in several ops, and keeps nothing for all variables (Nadam does).
_OPTIMIZERS = (
    keras.optimizers.Adam,
    keras.optimizers.AdamW,
    keras.optimizers.Adamax,
    keras.optimizers.RMSprop,
    keras.optimizers.Lion,
)
# Weights times steps: about a nanosecond of each is saved, and compiling takes half a second.
_LEAST_WORK = 2_000_000_000


def refusal(model: Model, steps: int) -> str | None:
    """Why it is not worth it for so many steps, or cannot be done; None if it is."""
    if type(model.optimizer) not in _OPTIMIZERS:
        return f"{type(model.optimizer).__name__} is not compiled by itself"
    if not model.built:
        return "the model has no weights yet"
    if not on_processors():
        return "this has been measured on processors only"
    tables = {id(one) for layer in layers_of(model) if _is_table(layer) for one in layer.weights}
    sizes = (size_of(one) for one in model.trainable_variables if id(one) not in tables)
    weights = sum(size for size in sizes if size >= LARGE)
    if weights * steps < _LEAST_WORK:
        return f"{weights:,} weights of large variables are too few"
    return None


def _is_table(layer: Layer) -> bool:
    """Whether the gradients of its weights come as some rows."""
    return isinstance(layer, keras.layers.Embedding)


def _is_compiled(gradient: Tensor, variable: Variable) -> bool:
    # Of some rows XLA would compile an update for each number of them; as a whole they would be summed before they are
    # squared, which Keras does not do.
    return size_of(variable) >= LARGE and not isinstance(gradient, tf.IndexedSlices)


def fused(optimizer: Optimizer) -> AbstractContextManager[None]:
    """What is traced inside has the optimizer's update of large variables compiled."""
    return update_replaced(optimizer, _compiled)


def _compiled(plain: Update) -> Update:
    def update(gradients: Sequence[Tensor], variables: Sequence[Variable], rate: Tensor) -> None:
        pairs = list(zip(gradients, variables, strict=True))
        large = [pair for pair in pairs if _is_compiled(*pair)]
        others = [pair for pair in pairs if not _is_compiled(*pair)]
        if others:
            plain(*map(list, zip(*others, strict=True)), rate)
        if large:

            def update_large(given: list[Tensor]) -> None:
                plain(given, [variable for _, variable in large], rate)

            compiled = tf.function(update_large, autograph=False, jit_compile=True)
            compiled([gradient for gradient, _ in large])

    return update
