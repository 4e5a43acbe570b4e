"""The parts of the rows, all of them or training and held-out rows, and the datasets of the parts.

Rows are held out at random, from the end, in whole groups, or by time. If rows belong together, drawing them at random
leaks information: a model would train on some purchases of a customer and be tested on the others. And a model that is
to predict tomorrow must not be tested on yesterday.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stoker.data.array_types import Array, Integers
from stoker.data.order import Order
from stoker.data.store import Writer
from stoker.errors import ArgumentError, whole_number
from stoker.tf_internals.types import Dataset
from stoker.units import quantity

Split = float | tuple[float, ...] | None


@dataclass(frozen=True)
class Passes:
    """How to iterate over the rows of any reader; `readers.csv` describes the fields."""

    batch_size: int = 32
    shuffle: bool = False
    seed: int = 0
    validation_split: Split = None
    shard: tuple[int, int] = (0, 1)
    drop_remainder: bool = False


@dataclass(frozen=True)
class By:
    """The column that the rows are split by.

    Attributes:
        how: "group": rows with the same value stay together; "time": the latest rows are held out.
        column: the column's name.
        values: its value in each row.
    """

    how: str
    column: str
    values: Array


def orders(rows: int, options: Passes, by: By | None = None) -> list[Order]:
    """Return one order over all rows, or one for training and one for each held-out part.

    Args:
        rows: the number of rows.
        options: the caller's options.
        by: the column that the rows are split by; None splits them at random, or by their place.

    Raises:
        ArgumentError: an option is invalid, or a part would be empty.
    """
    batch_size, seed, shard = check_sizes(options.batch_size, options.seed, options.shard)
    shuffle, share = bool(options.shuffle), options.validation_split
    drop_remainder = bool(options.drop_remainder)
    whole = Order(rows, batch_size, shuffle, seed, shard=shard, drop_remainder=drop_remainder)
    if not share:
        if by is not None:
            raise ArgumentError(
                f"{by.how}={by.column!r} says which rows to hold out, not how many: add validation_split=0.1"
            )
        return [_check_steps(whole)]
    if isinstance(share, tuple | list) or by is not None:
        return _list_parts(whole, _shares(share), by)
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise ArgumentError(f"validation_split={share!r} must lie between 0 and 1, such as 0.1")
    held_out = round(rows * share)
    if not 0 < held_out < rows:
        raise ArgumentError(
            f"validation_split={share!r} of {quantity(rows, 'row')} leaves one of the two parts empty: change it"
        )
    train = replace(whole, part="train", held_out=held_out, split_at_random=shuffle)
    return [_check_steps(train), _check_steps(replace(train, part="held out", shuffle=False))]


def _shares(value: Split) -> tuple[float, ...]:
    shares = tuple(value) if isinstance(value, tuple | list) else (value,)
    numbers = tuple(one for one in shares if isinstance(one, int | float) and 0 < one < 1)
    if len(numbers) < len(shares) or not sum(numbers) < 1:
        raise ArgumentError(
            f"validation_split={value!r} must lie between 0 and 1, such as 0.1; so must the sum of several, (0.1, 0.1)"
        )
    return numbers


def _list_parts(whole: Order, shares: tuple[float, ...], by: By | None) -> list[Order]:
    """Return orders over parts whose rows are listed."""
    found = []
    for number, rows in enumerate(divide(whole.rows, shares, by, whole.seed if whole.shuffle else None)):
        writer = Writer(None)
        writer.append("rows", rows.astype("int64"))
        part = replace(whole, part="train", chosen=writer.finish({"rows": len(rows)}))
        found.append(_check_steps(replace(part, part="held out", shuffle=False) if number else part))
    return found


def _check_steps(order: Order) -> Order:
    if order.steps == 0:
        batch = f"full batch of {order.batch_size}" if order.drop_remainder and order.own else "batch"
        raise ArgumentError(
            f"shard={order.shard}: no {batch} can be made of {quantity(order.in_part, 'row')}: "
            "use fewer shards or smaller batches"
        )
    return order


def make_datasets(
    parts: list[Order], make: Callable[[Order], Dataset], features: object = None, *, divisible: bool = True
) -> Dataset | tuple[Dataset, ...]:
    """Return the dataset of each part, with attributes `rows`, `features`, `class_names`, `labels` and `for_worker`.

    Args:
        parts: the orders of their rows.
        make: makes the dataset of an order.
        features: the features of a table, or any object that has the names of the classes as `labels`.
        divisible: whether each worker may read a share of every batch.
    """
    datasets = []
    for order in parts:
        dataset = make(order)
        datasets.append(dataset)
        dataset.rows = order.own
        dataset.for_worker = partial(_take_worker_share, make if divisible else None, order)
        dataset.features = features
        dataset.class_names = dataset.labels = getattr(features, "labels", None)
    return datasets[0] if len(datasets) == 1 else tuple(datasets)


def _take_worker_share(
    make: Callable[[Order], Dataset] | None, order: Order, rank: int, count: int
) -> Dataset | None:
    """Return every `count`-th row of each batch, so that all workers together read it; None if that is impossible."""
    if make is None or order.shard != (0, 1) or order.batch_size % count or order.own < count:
        return None
    return make(replace(order, shard=(rank, count), batch_size=order.batch_size // count))


def check_sizes(batch_size: int, seed: int, shard: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
    """Check the three values, and return them as plain numbers.

    Raises:
        ArgumentError: one is invalid.
    """
    try:
        index, count = (operator.index(one) for one in shard)
    except (TypeError, ValueError):
        raise ArgumentError(f"shard={shard!r} must be (index, count), such as (0, 4)") from None
    if not 0 <= index < count:
        raise ArgumentError(f"shard={shard!r}: the index must lie between 0 and {count - 1}")
    return whole_number("batch_size", batch_size, 1), whole_number("seed", seed), (index, count)


def divide(rows: int, shares: Sequence[float], by: By | None, seed: int | None) -> list[Integers]:
    """Return the row numbers of each part: the training rows, then a held-out part for each share.

    Args:
        rows: the number of rows.
        shares: the share of the rows in each held-out part.
        by: the column to split by; None splits at random, or by place.
        seed: the seed of the random choice; None holds out the last rows.

    Raises:
        ArgumentError: there are too few rows, groups or times for this many parts.
    """
    if by is not None:
        return (
            _split_by_time(rows, shares, by)
            if by.how == "time"
            else _split_by_group(rows, shares, by, seed or 0)
        )
    order = np.arange(rows) if seed is None else _make_generator(seed).permutation(rows)
    parts = np.split(order, rows - np.cumsum([round(share * rows) for share in reversed(shares)])[::-1])
    if not all(len(one) for one in parts):
        raise ArgumentError(
            f"validation_split={tuple(shares)!r} of {quantity(rows, 'row')} leaves a part empty: change it"
        )
    return parts


def _make_generator(seed: int) -> np.random.Generator:
    """Return a random generator; NumPy takes no negative seeds."""
    return np.random.default_rng(seed if seed >= 0 else seed % 2**64)


def _split_by_group(rows: int, shares: Sequence[float], by: By, seed: int) -> list[Integers]:
    groups, codes, counts = np.unique(by.values, return_inverse=True, return_counts=True)
    if len(groups) <= len(shares):
        raise ArgumentError(
            f"rows cannot be split by {by.column!r}: it has {quantity(len(groups), 'group')}, and "
            f"{len(shares) + 1} parts need at least {len(shares) + 1}"
        )
    mixed = _make_generator(seed).permutation(len(groups))
    parts = np.empty(len(groups), int)
    parts[mixed] = _cut(counts[mixed], [share * rows for share in shares])
    return [np.flatnonzero(parts[codes] == one) for one in range(len(shares) + 1)]


def _cut(counts: Integers, wanted: Sequence[float]) -> Integers:
    """Return the part of each group. Each part takes groups in turn, as many as come nearest to its share."""
    parts = np.zeros(len(counts), int)
    first = 0
    for number, share in enumerate(wanted, 1):
        sizes = np.cumsum(counts[first:])
        # Leave at least one group for each of the next parts, and one for training.
        most = len(counts) - first - (len(wanted) - number) - 1
        count = 1 + int(np.argmin(np.abs(sizes[:most] - share)))
        parts[first : first + count] = number
        first += count
    return parts


def _split_by_time(rows: int, shares: Sequence[float], by: By) -> list[Integers]:
    """Return the parts from the earliest to the latest; rows with the same time stay together."""
    order = np.argsort(by.values, kind="stable")
    times = by.values[order]
    first = rows - np.cumsum([share * rows for share in reversed(shares)])[::-1].round().astype(int)
    bounds = [int(np.searchsorted(times, times[min(max(one, 0), rows - 1)])) for one in first]
    parts = np.split(order, bounds)
    if not all(len(one) for one in parts):
        raise ArgumentError(
            f"rows cannot be split by {by.column!r}: it has too few different times for {len(parts)} parts"
        )
    return parts
