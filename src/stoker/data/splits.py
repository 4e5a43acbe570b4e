"""The parts of the rows: all of them, or training and held-out rows; and the datasets of the parts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from stoker.data.dividing import By, divide
from stoker.data.order import Order
from stoker.data.store import Writer
from stoker.errors import ArgumentError, whole_number
from stoker.tf_internals.types import Dataset

Split = float | tuple[float, ...] | None


@dataclass(frozen=True)
class Passes:
    """How to go through the rows of any reader; `readers.csv` describes the fields."""

    batch_size: int = 32
    shuffle: bool = False
    seed: int = 0
    validation_split: Split = None
    shard: tuple[int, int] = (0, 1)
    drop_remainder: bool = False


def orders(rows: int, options: Passes, by: By | None = None) -> list[Order]:
    """One order over all rows, or one for training and one for each held-out part.

    Args:
        rows: how many there are.
        options: the caller's.
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
        raise ArgumentError(f"validation_split={share!r} of {rows:,} rows leaves one of the two parts empty")
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
    """Orders over parts whose rows are listed."""
    found = []
    for number, rows in enumerate(divide(whole.rows, shares, by, whole.seed if whole.shuffle else None)):
        writer = Writer(None)
        writer.append("rows", rows.astype("int64"))
        part = replace(whole, part="train", chosen=writer.finish({"rows": len(rows)}))
        found.append(_check_steps(replace(part, part="held out", shuffle=False) if number else part))
    return found


def _check_steps(order: Order) -> Order:
    if order.steps == 0:
        why = f" as full batches of {order.batch_size}" if order.drop_remainder and order.own else ""
        raise ArgumentError(f"shard={order.shard}: nothing is left of {order.in_part:,} rows{why}")
    return order


def make_datasets(
    parts: list[Order], make: Callable[[Order], Dataset], features: object = None, *, divisible: bool = True
) -> Dataset | tuple[Dataset, ...]:
    """The dataset of each part, with the attributes `rows`, `features`, `class_names`, `labels` and `for_worker`.

    Args:
        parts: the orders of their rows.
        make: makes the dataset of an order.
        features: of a table; or anything that knows the names of the classes as `labels`.
        divisible: workers may each read a share of every batch.
    """
    datasets = []
    for order in parts:
        dataset = make(order)
        datasets.append(dataset)
        dataset.rows = order.own
        dataset.for_worker = partial(_for_worker, make if divisible else None, order)
        dataset.features = features
        dataset.class_names = dataset.labels = getattr(features, "labels", None)
    return datasets[0] if len(datasets) == 1 else tuple(datasets)


def _for_worker(
    make: Callable[[Order], Dataset] | None, order: Order, rank: int, count: int
) -> Dataset | None:
    """Every `count`-th row of each batch, so that all workers together read it; None if that is impossible."""
    if make is None or order.shard != (0, 1) or order.batch_size % count or order.own < count:
        return None
    return make(replace(order, shard=(rank, count), batch_size=order.batch_size // count))


def check_sizes(batch_size: int, seed: int, shard: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
    """These three as plain numbers.

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
