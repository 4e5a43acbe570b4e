"""The optimizer's update of large variables, compiled by XLA: one pass over memory in place of one for each op.

RMSprop and its kin do several things to every weight at every step, also to the rows of a table of embeddings that no
word of the batch has. On a processor that takes as long as the memory needs, and it can be compiled by itself where the
step cannot: with text, lengths that change, masks that XLA would draw otherwise. For Adam there is `fused_adam`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from stoker.execution import fused_adam
from stoker.execution.fused_parts import LARGE, on_processors, size_of

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


def refusal(model: Any, steps: int) -> str | None:
    """Why it is not worth it for so many steps, or cannot be done; None if it is."""
    if type(model.optimizer) not in _OPTIMIZERS:
        return f"{type(model.optimizer).__name__} is not compiled by itself"
    if not model.built:
        return "the model has no weights yet"
    if not on_processors():
        return "this has been measured on processors only"
    weights = sum(size_of(variable) for variable in model.trainable_variables if size_of(variable) >= LARGE)
    if weights * steps < _LEAST_WORK:
        return f"{weights:,} weights of large variables are too few"
    return None


@contextmanager
def fused(optimizer: Any) -> Iterator[None]:
    """What is traced inside has the optimizer's update of large variables compiled."""
    plain = optimizer._backend_update_step

    def update(gradients: Sequence[Any], variables: Sequence[Any], rate: Any) -> None:
        pairs = list(zip(gradients, variables, strict=True))
        # XLA would compile anew for each number of rows of a table.
        large = [(fused_adam.dense(gradient), one) for gradient, one in pairs if size_of(one) >= LARGE]
        small = [pair for pair in pairs if size_of(pair[1]) < LARGE]
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
