"""The order of the rows: complete, repeatable, the same for every process that asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.data.order import Order
from tests.chance import assert_even, assert_fair_orders
from tests.data.frames import mixed
from tests.support import ROOT


def _ids(dataset: Any) -> Any:
    return np.concatenate([batch.numpy() for batch in dataset])


# One more than a power of four was no permutation once: a row came twice, another never.
@pytest.mark.parametrize("rows", [1, 2, 3, 10, 257, 65_537])
def test_every_epoch_is_a_complete_permutation(rows: int) -> None:
    dataset = stoker.data.arrays(np.arange(rows), batch_size=rows // 3 + 1, shuffle=True, seed=3)
    passes = [_ids(dataset) for _ in range(3)]
    for one in passes:
        assert np.array_equal(np.sort(one), np.arange(rows))
    if rows > 10:
        assert not np.array_equal(passes[0], passes[1])
        assert not np.array_equal(passes[1], passes[2])


_FIRST = tf.constant(0, tf.int64)
# Sorted, and permuted place by place.
_SIZES = [50, 70_000]
_LOOKED_AT = 50


def _keys(order: Order, epochs: int) -> Any:
    """Those of the first passes over a dataset of this order."""
    options = tf.data.Options()
    # Its model grows with every pass of a `repeat`.
    options.autotune.enabled = False
    return next(iter(order.key().repeat(epochs).batch(epochs).with_options(options))).numpy()


def _beginnings(order: Order, keys: Any) -> Any:
    """The first rows of the epochs with these keys."""

    @tf.function(autograph=False)
    def many(keys: Any) -> Any:
        last = tf.constant(_LOOKED_AT, tf.int64)
        return tf.map_fn(lambda key: order.places(_FIRST, last, order.epoch(key)), keys)

    return many(tf.constant(keys)).numpy()


@pytest.mark.parametrize("rows", _SIZES)
def test_no_order_comes_twice_in_10_000_epochs_and_all_are_fair(rows: int) -> None:
    order = Order(rows, _LOOKED_AT, shuffle=True, seed=5)
    keys = _keys(order, 10_000)
    assert len(np.unique(keys, axis=0)) == 10_000
    found = _beginnings(order, keys)
    assert len(np.unique(found, axis=0)) == 10_000
    assert (np.diff(np.sort(found)) > 0).all()
    assert 0 <= found.min() < found.max() < rows
    # Of many rows: which fiftieth of the data each place and pair of places has its row from.
    parts = found * _LOOKED_AT // rows
    for place in range(0, _LOOKED_AT, 7):
        assert_even(np.bincount(parts[:, place], minlength=_LOOKED_AT))
    if rows == _LOOKED_AT:
        assert_fair_orders(found)
        return
    for one, other in ((0, 1), (0, 25), (17, 49)):
        assert_even(np.bincount(parts[:, one] * _LOOKED_AT + parts[:, other], minlength=_LOOKED_AT**2))


def test_passes_have_the_orders_of_their_keys() -> None:
    order = Order(50, 50, shuffle=True, seed=5)
    dataset = stoker.data.arrays(np.arange(50), batch_size=50, shuffle=True, seed=5)
    assert np.array_equal([_ids(dataset) for _ in range(5)], _beginnings(order, _keys(order, 5)))


@pytest.mark.slow
@pytest.mark.parametrize("rows", _SIZES)
def test_near_seeds_have_unrelated_orders_and_splits(rows: int) -> None:
    """Seeds that count up, and a seed with each of its 64 bits changed: as epochs of one key, and as splits."""
    key = tf.constant([7, 8], tf.int64)
    seeds = [*range(200), *(12345 ^ 1 << bit for bit in range(64)), 12345, -1]
    looked_at, kept = tf.constant(_LOOKED_AT, tf.int64), 10
    orders, held_out = [], []
    for seed in seeds:
        order = Order(rows, _LOOKED_AT, shuffle=True, seed=seed)
        orders.append(order.places(_FIRST, looked_at, order.epoch(key)).numpy())
        split = Order(rows, 10, seed=seed, held_out=kept, part="held out", split_at_random=True)
        held_out.append(split.places(_FIRST, looked_at, ()).numpy())
    for found in (orders, held_out):
        assert len({one.tobytes() for one in found}) == len(seeds)
        assert_even(np.bincount(np.array(found).ravel() * 10 // rows, minlength=10))
        first = np.array(found)[:, 0] * 10 // rows
        assert_even(np.bincount(first, minlength=10))
        assert_even(np.bincount(first[1:200] * 3 // 10 * 3 + first[:199] * 3 // 10, minlength=9))


def test_draws_are_fair_and_unrelated_between_purposes_epochs_and_seeds() -> None:
    count = tf.constant(20_000, tf.int64)
    orders = [Order(20_000, 32, seed=seed) for seed in (0, 1, 2**63)]
    drawn = [
        order.draws(_FIRST, count, (tf.constant(key, tf.int64),), purpose).numpy()
        for order in orders
        for key in ([1, 2], [1, 3], [2, 2])
        for purpose in ("0 flip", "1 flip")
    ]
    for numbers in drawn:
        assert_even(np.bincount((numbers * 100).astype(int), minlength=100))
        later = (numbers[1:] * 10).astype(int) * 10 + (numbers[:-1] * 10).astype(int)
        assert_even(np.bincount(later, minlength=100))
    alike = np.corrcoef(drawn) - np.eye(len(drawn))
    assert np.abs(alike).max() < 6 / 20_000**0.5


def test_draws_go_by_place_whatever_the_shards() -> None:
    epoch = (tf.constant([3, 4], tf.int64),)
    whole = Order(100, 10, seed=2).draws(_FIRST, tf.constant(100, tf.int64), epoch, "hue").numpy()
    for index in range(3):
        part = Order(100, 10, seed=2, shard=(index, 3))
        own = part.draws(_FIRST, tf.constant(100, tf.int64), epoch, "hue").numpy()
        assert np.array_equal(own, whole[index::3])


def test_orders_do_not_depend_on_tensorflows_global_seed() -> None:
    passes = []
    for seed in (1, 2):
        tf.random.set_seed(seed)
        passes.append(_ids(stoker.data.arrays(np.arange(500), shuffle=True, seed=9)))
    assert np.array_equal(*passes)


def test_other_seeds_have_other_orders() -> None:
    orders = {
        tuple(_ids(stoker.data.arrays(np.arange(50), shuffle=True, seed=seed))) for seed in (0, 1, 2**33, -1)
    }
    assert len(orders) == 4


_PROGRAM = """
import hashlib, sys
import stoker
options = dict(batch_size=64, shuffle=True, seed=5, validation_split=0.2)
dataset, held_out = stoker.data.csv(sys.argv[1], label="kind", **options)
digest = hashlib.sha256()
for _ in range(3):
    for inputs, labels in dataset:
        for name in sorted(inputs):
            digest.update(repr(inputs[name].numpy().tolist()).encode())
        digest.update(labels.numpy().tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_three_epochs_repeat_bit_for_bit_in_another_process(tmp_path: Path) -> None:
    mixed(700).to_csv(tmp_path / "t.csv", index=False)
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "t.csv")]
    runs = [subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == 64


@pytest.mark.parametrize("shuffle", [False, True])
def test_shards_share_out_every_epoch(shuffle: bool) -> None:
    parts = [
        stoker.data.arrays(np.arange(103), batch_size=8, shuffle=shuffle, seed=4, shard=(index, 3))
        for index in range(3)
    ]
    assert [part.rows for part in parts] == [35, 34, 34]
    for _ in range(2):
        taken = np.concatenate([_ids(part) for part in parts])
        assert np.array_equal(np.sort(taken), np.arange(103))


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_split_is_exact_and_the_same_in_every_epoch_and_shard(shuffle: bool) -> None:
    options: dict[str, Any] = {"shuffle": shuffle, "seed": 4, "validation_split": 0.3}
    train, held_out = stoker.data.arrays(np.arange(200), **options)
    assert (train.rows, held_out.rows) == (140, 60)
    aside = set(_ids(held_out))
    for _ in range(2):
        assert set(_ids(train)) == set(range(200)) - aside
    if not shuffle:
        assert aside == set(range(140, 200))
    halves = [stoker.data.arrays(np.arange(200), **options, shard=(index, 2)) for index in range(2)]
    assert {row for _, part in halves for row in _ids(part)} == aside


def test_an_iterator_can_be_saved_and_goes_on_at_its_place(tmp_path: Path) -> None:
    def make() -> Any:
        return stoker.data.arrays(np.arange(300), batch_size=10, shuffle=True, seed=1)

    iterator = iter(make())
    for _ in range(7):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "place"))
    expected = [next(iterator).numpy().tolist() for _ in range(23)]
    other = iter(make())
    tf.train.Checkpoint(iterator=other).read(saved)
    assert [next(other).numpy().tolist() for _ in range(23)] == expected


def test_drop_remainder_gives_batches_of_a_known_length() -> None:
    dataset = stoker.data.arrays(np.arange(25), batch_size=10, drop_remainder=True)
    assert dataset.element_spec.shape == (10,)
    assert [len(batch) for batch in dataset] == [10, 10]
