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
from tests.data.frames import mixed
from tests.support import ROOT


def _ids(dataset: Any) -> Any:
    return np.concatenate([batch.numpy() for batch in dataset])


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 257, 5000])
def test_every_epoch_is_a_complete_permutation(rows: int) -> None:
    dataset = stoker.data.arrays(np.arange(rows), batch_size=7, shuffle=True, seed=3)
    passes = [_ids(dataset) for _ in range(3)]
    for one in passes:
        assert np.array_equal(np.sort(one), np.arange(rows))
    if rows > 10:
        assert not np.array_equal(passes[0], passes[1])
        assert not np.array_equal(passes[1], passes[2])


def test_the_shuffle_is_uniform_enough() -> None:
    """Where the first row goes, over many keys and seeds: no place is preferred (chi-square, far beyond chance)."""
    first, last = tf.constant(0, tf.int64), tf.constant(15, tf.int64)
    keys = np.random.default_rng(0).integers(-(2**63), 2**63, 1000)
    split: dict[str, Any] = {"held_out": 5, "part": "train", "split_at_random": True}
    by_key = [Order(20, 20, shuffle=True, seed=3).places(first, last, tf.constant(key)) for key in keys]
    by_seed = [Order(20, 15, seed=seed, **split).places(first, last, first) for seed in range(1000)]
    for orders in (by_key, by_seed):
        counts = np.bincount([int(order[0]) for order in orders], minlength=20)
        assert ((counts - 50) ** 2 / 50).sum() < 50


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
