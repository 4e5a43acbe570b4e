"""Batches gathered by the numbers of their rows are those of `from_tensor_slices`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.data.tuning import comparing
from stoker.data.tuning.rebuilding import make_comparable
from tests.data.tuning.judging import NUMBERS, changed

ROWS = 101


def slices() -> Any:
    structure = {
        "x": (np.arange(ROWS * 6, dtype=np.float64).reshape(ROWS, 2, 3), np.arange(ROWS) % 2 == 0),
        "name": np.array([f"row {number}" for number in range(ROWS)]),
    }
    return tf.data.Dataset.from_tensor_slices(structure)


GATHERED: dict[str, Callable[[Any], Any]] = {
    "as they are": lambda ds: ds.batch(8),
    "only whole batches": lambda ds: ds.batch(8, drop_remainder=True),
    "shuffled anew each epoch": lambda ds: ds.shuffle(ROWS, seed=1).batch(8),
    "shuffled through a small buffer": lambda ds: ds.shuffle(5, seed=1).batch(8),
    "shuffled, no seed": lambda ds: ds.shuffle(50).batch(8),
    "repeated, then batched": lambda ds: ds.shuffle(50, seed=1).repeat(3).batch(8),
    "a part": lambda ds: ds.skip(3).shard(2, 1).take(20).batch(8),
    "batches in parallel": lambda ds: ds.batch(8, num_parallel_calls=2),
    "batches of batches": lambda ds: ds.batch(8).batch(2),
}
LEFT: dict[str, Callable[[Any], Any]] = {
    "never batched": lambda ds: ds.shuffle(5, seed=1),
    "filtered": lambda ds: ds.filter(lambda row: row["x"][1]).batch(8),
    "cached": lambda ds: ds.cache().batch(8),
}


@pytest.mark.parametrize("name", GATHERED)
def test_the_same_batches(name: str) -> None:
    ds = GATHERED[name](slices())
    tuned, report = changed(ds)
    assert NUMBERS in {change.name for change in report.changes}
    assert comparing.difference(make_comparable(ds), make_comparable(tuned), 2 * ROWS) is None


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    _, report = changed(LEFT[name](slices()))
    assert NUMBERS not in {change.name for change in report.changes}


def test_ragged_rows_are_left_alone() -> None:
    ds = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[[1], [2, 3]], [[4], [5]]])).batch(2)
    _, report = changed(ds)
    assert NUMBERS not in {change.name for change in report.changes}
