"""Iterators of `tf.data`."""

from __future__ import annotations

import tensorflow as tf

from stoker.tf_internals import iterators
from tests.tf_internals.calls import recorded


def test_iterator_type_has_no_finalizer_of_its_own() -> None:
    kind = iterators.iterator_type()
    assert type(iter(tf.data.Dataset.range(1))) is kind
    assert not hasattr(kind, "__del__")


def test_next_element_is_passed() -> None:
    iterator = iter(tf.data.Dataset.range(3))
    with recorded(iterators.next_element()) as calls:
        assert [int(next(iterator)), int(iterator.get_next())] == [0, 1]
    assert calls == [(iterator,), (iterator,)]


def test_next_distributed_element_is_passed() -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2)))
    with recorded(iterators.next_distributed_element()) as calls:
        next(iterator)
    assert [args[0] is iterator for args in calls] == [True]


def test_dataset_of_an_iterator() -> None:
    dataset = tf.data.Dataset.range(1)
    iterator = iter(dataset)
    assert tf.data.experimental.cardinality(iterators.dataset_of(iterator)) == 1
    assert iterators.dataset_of(object()) is None


def test_resource_is_taken_and_dropped() -> None:
    iterator = iter(tf.data.Dataset.range(3))
    spec = tf.TensorSpec([], tf.int64)
    element = tf.raw_ops.IteratorGetNext(
        iterator=iterators.resource(iterator), output_types=[spec.dtype], output_shapes=[spec.shape]
    )
    assert int(element[0]) == 0
    iterators.drop_resource(iterator)
    iterators.drop_resource(iterator)
    assert not hasattr(iterator, "_iterator_resource")
