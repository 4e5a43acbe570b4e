"""The orders of rows on the device: fair, each another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.train.execution.feeding.resident import Resident, order_of
from stoker.train.execution.feeding.streamed import StreamedRows
from tests.chance import assert_fair_orders

ROWS, EPOCHS = 50, 10_000


def test_no_order_comes_twice_in_10_000_epochs_and_all_are_fair() -> None:
    orders = np.array([order_of(ROWS, 8, True, 5, epoch) for epoch in range(EPOCHS)])
    assert len(np.unique(orders, axis=0)) == EPOCHS
    assert_fair_orders(orders)


def test_near_seeds_have_unrelated_orders() -> None:
    seeds = [*range(2000), *(12345 ^ 1 << bit for bit in range(64)), 12345]
    orders = np.array([order_of(ROWS, 8, True, seed, 0) for seed in seeds])
    assert len(np.unique(orders, axis=0)) == len(seeds)
    assert_fair_orders(orders)


def test_rows_of_a_batch_are_shuffled_fairly_and_stay_in_it() -> None:
    orders = np.array([order_of(ROWS, 8, "batch", 5, epoch) for epoch in range(EPOCHS)])
    for start in range(0, ROWS, 8):
        assert_fair_orders(orders[:, start : start + 8] - start)


@pytest.mark.parametrize("shuffle", [True, "batch"])
def test_feeds_take_these_orders(shuffle: Any) -> None:
    rows = tf.range(ROWS)
    for feed in (Resident(rows, 8, shuffle=shuffle, seed=5), StreamedRows(rows, 8, shuffle=shuffle, seed=5)):
        for epoch in range(3):
            feed.begin_epoch(epoch)
            operands = feed.operands()
            taken = [feed.batch(operands, tf.constant(step), whole=False).numpy() for step in range(7)]
            assert np.array_equal(np.concatenate(taken), order_of(ROWS, 8, shuffle, 5, epoch))
        feed.close()
