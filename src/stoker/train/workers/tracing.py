"""The changes to Keras on a replica while a trainer traces a step over all replicas.

Losses: Keras divides every loss object's result by the number of replicas, as if all had equally many rows; here each
replica's mean counts with its rows. Draws: the replicas' generators are in the same state, so all replicas would drop
the same units; the number of the replica is therefore mixed into its draws. Replica 0 draws what a single device draws.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import losses_module
from stoker.tf_internals.types import SeedGenerator, Tensor

# An odd number, so that the seeds of any two replicas differ.
_APART = 0x9E3779B1

_local = threading.local()
_lock = threading.Lock()
_users = 0
_losses = losses_module()
_scale = _losses.scale_loss_for_distribution
_unscale = _losses.unscale_loss_for_distribution
_next = keras.random.SeedGenerator.next


@contextmanager
def on_replica(number: Tensor) -> Iterator[None]:
    """Trace a step on this replica within the block, in the thread that traces it."""
    _count(1)
    before = getattr(_local, "number", None)
    _local.number = number
    try:
        yield
    finally:
        _local.number = before
        _count(-1)


def _count(change: int) -> None:
    """Count the threads that trace, and patch Keras while there are any. In other threads Keras behaves as usual."""
    global _users
    with _lock:
        _users += change
        patched = _users > 0
        _losses.scale_loss_for_distribution = _skip_on_replicas(_scale) if patched else _scale
        _losses.unscale_loss_for_distribution = _skip_on_replicas(_unscale) if patched else _unscale
        keras.random.SeedGenerator.next = _draw_seed if patched else _next


def _skip_on_replicas(theirs: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda value: theirs(value) if getattr(_local, "number", None) is None else value


def _draw_seed(generator: SeedGenerator, ordered: bool = True) -> Tensor:
    seed = _next(generator, ordered)
    number = getattr(_local, "number", None)
    if number is None:
        return seed
    # Compute in 64 bits, since overflow is undefined for signed 32-bit numbers.
    mixed = tf.cast(number, tf.int64) * _APART % (2**31)
    return seed + tf.cast(tf.stack([mixed, tf.zeros_like(mixed)]), seed.dtype)
