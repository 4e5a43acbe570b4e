"""Writing on a condition that only the device knows, without having the host wait for it.

A branch in a graph is taken by the host: the condition is copied to it at every step, and until it is there nothing
more is launched. Where the weights are on an accelerator and small, it takes less to write in any case and to put
back what was there before; both ways end with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from stoker.tf_internals.types import Tensor

# Weights and slots up to this size are copied and put back in about the time a host takes to be asked.
LARGEST_COPIED = 16 * 2**20


def write_if(good: Tensor, write: Callable[[], object], state: Sequence[Tensor]) -> None:
    """In graph: change variables if `good`.

    Args:
        good: a truth value on the device.
        write: changes variables of `state`, and no others.
        state: TensorFlow's variables, on one device.
    """
    if not _better_put_back(state):
        tf.cond(good, lambda: _and_done(write), lambda: False)
        return
    before = [tf.identity(variable) for variable in state]
    write()
    for variable, value in zip(state, before, strict=True):
        variable.assign(tf.where(good, variable, value))


def _better_put_back(state: Sequence[Tensor]) -> bool:
    size = sum(variable.dtype.size * (variable.shape.num_elements() or 0) for variable in state)
    return size <= LARGEST_COPIED and any("CPU" not in str(variable.device) for variable in state)


def _and_done(write: Callable[[], object]) -> bool:
    write()
    return True
