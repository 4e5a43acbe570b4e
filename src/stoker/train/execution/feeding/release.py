"""Letting go of iterators that are used up, beside the training instead of in it.

When the last reference to an iterator goes, TensorFlow waits for the thread that tunes its pipeline, which may be in
the middle of its work: a tenth of a second is common, with Python's lock held all the time. So the iterator is moved
to where only TensorFlow holds it, and a thread asks TensorFlow to drop it, which it does without the lock.
"""

from __future__ import annotations

import threading

import tensorflow as tf

from stoker.tf_internals.iterators import resource
from stoker.tf_internals.types import DatasetIterator

_PLACE = "stoker/iterators to let go"


def hand_over(iterator: DatasetIterator) -> None:
    """Give an iterator to TensorFlow alone; the caller then drops its own references.

    That of a distributed dataset is several iterators and a strategy: it goes with its last reference.
    """
    if isinstance(iterator, tf.distribute.DistributedIterator):
        return
    with tf.device("CPU"):
        tf.raw_ops.Stage(values=[resource(iterator)], shared_name=_PLACE)


def let_go() -> None:
    """Drop the iterators that were handed over; returns at once."""
    threading.Thread(target=_drop, name="stoker-release").start()


def _drop() -> None:
    with tf.device("CPU"):
        tf.raw_ops.StageClear(dtypes=[tf.resource], shared_name=_PLACE)
