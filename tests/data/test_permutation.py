"""Permutations have every number once, of any count."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from stoker.data.permutation import LISTED, make_tables, permute


@pytest.mark.parametrize(
    "count", [1, 2, 3, LISTED - 1, LISTED, LISTED + 1, LISTED + 2, 257 * 257, 4**9, 4**9 + 1, 1_000_003]
)
def test_every_number_comes_once(count: int) -> None:
    tables = make_tables(2**64 - 1, tf.constant([-1, count], tf.int64), count)
    found = permute(tf.range(count, dtype=tf.int64), tables, count).numpy()
    assert np.array_equal(np.sort(found), np.arange(count))


def test_pairs_that_stand_for_nothing_and_lead_to_each_other_alone() -> None:
    """Where the first of them leads to itself, a walk from there would never end."""
    count = 265 * 265 - 225
    for number in range(2000):
        tables = make_tables(number, tf.constant([0, 0], tf.int64), count)
        if int(tables[1].numpy().max()) >= count:
            found = permute(tf.range(count, dtype=tf.int64), tables, count).numpy()
            assert np.array_equal(np.sort(found), np.arange(count))
            return
    pytest.fail("none of 2,000 keys has such pairs")


def test_a_billion_rows_need_a_megabyte() -> None:
    count = 10**9
    tables = make_tables(1, tf.constant([2, 3], tf.int64), count)
    assert sum(table.dtype.size * int(tf.size(table)) for table in tables) < 1.3e6
    found = permute(tf.range(count - 1000, count, dtype=tf.int64), tables, count).numpy()
    assert len(set(found)) == 1000
    assert 0 <= found.min() < found.max() < count
