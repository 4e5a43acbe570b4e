"""Iterators of `tf.data`, in Python and over several devices."""

from __future__ import annotations

from typing import Any

from stoker.tf_internals import Place
from stoker.tf_internals.types import Dataset, DatasetIterator, Tensor

# Operations that take the next element of a dataset.
NEXT_ELEMENT_OPS = frozenset({"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"})


def iterator_type() -> Any:
    """Return the class of the iterators that `iter(dataset)` returns. It has no `__del__` of its own."""
    from tensorflow.python.data.ops import iterator_ops

    return iterator_ops.OwnedIterator


def next_element() -> Place:
    """Return the method that returns an element: `(iterator) -> element`."""
    return iterator_type(), "_next_internal"


def next_distributed_element() -> Place:
    """Return the method that returns the elements of all replicas: `(iterator) -> element`."""
    from tensorflow.python.distribute import input_lib

    return input_lib.DistributedIteratorBase, "get_next"


def dataset_of(iterator: DatasetIterator) -> Dataset:
    """Return the dataset that an iterator reads; None if the iterator does not say."""
    return getattr(iterator, "_dataset", None)


def resource(iterator: DatasetIterator) -> Tensor:
    """Return the tensor that holds TensorFlow's side of an iterator."""
    return iterator._iterator_resource


def drop_resource(iterator: DatasetIterator) -> None:
    """Release TensorFlow's side of an iterator, which waits for the pipeline's threads."""
    iterator.__dict__.pop("_iterator_resource", None)
