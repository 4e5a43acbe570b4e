"""Positions of tf.data iterators: saved, given to a new iterator of the same pipeline, the same batches follow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tensorflow as tf

from stoker.errors import CheckpointError
from stoker.train.execution.feeding.iterator_state import capture, replay, restore, skip_epochs
from stoker.train.execution.feeding.streamed import Streamed

Pipeline = Callable[[], Any]


def rows() -> Any:
    return tf.data.Dataset.range(100)


def drawn(iterator: Any, count: int) -> list[Any]:
    return [element.numpy().tolist() for element in itertools.islice(iterator, count)]


PIPELINES: dict[str, Pipeline] = {
    "plain": rows,
    "shuffled": lambda: rows().shuffle(30, seed=1),
    "shuffled without a seed": lambda: rows().shuffle(30),
    "repeated": lambda: rows().shuffle(100, seed=1).repeat(3),
    "all of it": lambda: (
        rows().cache().shuffle(50).map(lambda x: x * 2, num_parallel_calls=2).batch(8).prefetch(2)
    ),
    "interleaved": lambda: rows().interleave(lambda x: tf.data.Dataset.range(x), cycle_length=3),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_new_iterator_goes_on_at_the_same_place(name: str) -> None:
    first = iter(PIPELINES[name]())
    drawn(first, 5)
    position = capture(first)
    assert position is not None
    second = iter(PIPELINES[name]())
    restore(second, position)
    assert drawn(second, 1000) == drawn(first, 1000)


def numbers() -> Iterator[int]:
    yield from range(100)


STATEFUL: dict[str, Pipeline] = {
    "PyFunc": lambda: tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64)),
    "EagerPyFunc": lambda: rows().map(lambda x: tf.py_function(lambda y: y, [x], tf.int64)),
    "RandomUniform": lambda: rows().map(lambda x: tf.random.uniform([])),
}


@pytest.mark.parametrize("operation", STATEFUL)
def test_what_cannot_be_saved_is_known(operation: str) -> None:
    iterator = iter(STATEFUL[operation]())
    drawn(iterator, 5)
    assert capture(iterator) is None


def test_replaying_a_generator_comes_to_the_same_place() -> None:
    iterator = iter(STATEFUL["PyFunc"]())
    replay(iterator, 5)
    assert drawn(iterator, 2) == [5, 6]


def test_too_little_data_to_replay_is_said() -> None:
    with pytest.raises(CheckpointError, match="ended after 100 batches, the checkpoint was saved after 101"):
        replay(iter(rows()), 101)


def test_another_pipeline_is_said_in_one_line() -> None:
    position = capture(iter(rows().shuffle(10)))
    assert position is not None
    with pytest.raises(CheckpointError, match="is not the one the checkpoint was saved with") as caught:
        restore(iter(rows().map(lambda x: x).batch(3)), position)
    assert "\n" not in str(caught.value)


def test_later_epochs_of_a_seeded_shuffle_come_in_their_order() -> None:
    dataset = rows().shuffle(100, seed=7)
    epochs = [drawn(iter(dataset), 100) for _ in range(3)]
    assert epochs[0] != epochs[2]
    again = rows().shuffle(100, seed=7)
    skip_epochs(again, 2)
    assert drawn(iter(again), 100) == epochs[2]


@pytest.mark.slow
@pytest.mark.parametrize("length", ["known", "unknown"])
@pytest.mark.parametrize("taken", [0, 3, 8, 9, 10])
def test_the_epochs_after_a_resumed_one_have_their_order_too(length: str, taken: int) -> None:
    """Also when the shuffle had nothing left: at the end, and before it because of prefetching."""

    def feed() -> Streamed:
        tf.random.set_seed(5)
        dataset = rows().shuffle(30).map(lambda x: x + 1).shuffle(10).batch(10).prefetch(2)
        return Streamed(dataset, 10 if length == "known" else None)

    whole = feed()
    epochs = []
    for epoch in range(4):
        whole.begin_epoch(epoch)
        epochs.append(drawn(whole.iterator, 20))
    first = feed()
    for epoch in (0, 1):
        first.begin_epoch(epoch)
        drawn(first.iterator, taken if epoch == 1 else 20)
    second = feed()
    second.seek({**first.position(), "taken": taken}, capture(first.iterator))
    if taken < 10 or length == "unknown":
        assert drawn(second.iterator, 20) == epochs[1][taken:]
    for epoch in (2, 3):
        second.begin_epoch(epoch)
        assert drawn(second.iterator, 20) == epochs[epoch]
