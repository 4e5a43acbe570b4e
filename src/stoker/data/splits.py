"""Which part of the rows a dataset goes through, checked, and what is attached to it when it is done."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from stoker.data.dividing import By, divided
from stoker.data.order import Order
from stoker.data.store import Writer
from stoker.errors import ArgumentError, whole_number


@dataclass(frozen=True, kw_only=True)
class Passes:
    """How a caller wants to go through the rows, whatever they are read from; see `readers.csv`."""

    batch_size: int = 32
    shuffle: bool = False
    seed: int = 0
    validation_split: float | tuple[float, ...] | None = None
    shard: tuple[int, int] = (0, 1)
    drop_remainder: bool = False


def orders(rows: int, options: Passes, by: By | None = None) -> list[Order]:
    """One order over all rows, or one for training and one for each part that is held out.

    Args:
        rows: of all the data.
        options: the caller's.
        by: what the rows are divided by, if not by chance or by their place.

    Raises:
        ArgumentError: a value that makes no sense.
    """
    batch_size, seed, shard = check_sizes(options.batch_size, options.seed, options.shard)
    common: dict[str, Any] = {
        "rows": rows,
        "batch_size": batch_size,
        "seed": seed,
        "shard": shard,
        "drop_remainder": bool(options.drop_remainder),
    }
    share = options.validation_split
    if not share:
        if by is not None:
            raise ArgumentError(
                f"{by.how}={by.column!r} says what is held out: say how much, validation_split=0.1"
            )
        return [_some(Order(**common, shuffle=bool(options.shuffle)))]
    if isinstance(share, tuple | list) or by is not None:
        return _chosen(_shares(share), common, bool(options.shuffle), by)
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise ArgumentError(f"validation_split={share!r} must lie between 0 and 1, such as 0.1")
    held_out = round(rows * share)
    if not 0 < held_out < rows:
        raise ArgumentError(f"validation_split={share!r} of {rows:,} rows leaves one of the two parts empty")
    common |= {"held_out": held_out, "split_at_random": bool(options.shuffle)}
    return [
        _some(Order(**common, part="train", shuffle=bool(options.shuffle))),
        _some(Order(**common, part="held out")),
    ]


def _shares(value: Any) -> tuple[float, ...]:
    shares = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(one, int | float) and 0 < one < 1 for one in shares) or not sum(shares) < 1:
        raise ArgumentError(
            f"validation_split={value!r} must lie between 0 and 1, such as 0.1; of several, (0.1, 0.1), the sum, too"
        )
    return shares


def _chosen(shares: tuple[float, ...], common: dict[str, Any], shuffle: bool, by: By | None) -> list[Order]:
    """Orders over parts whose rows are listed."""
    found = []
    seed = common["seed"] if shuffle else None
    for number, rows in enumerate(divided(common["rows"], shares, by, seed)):
        writer = Writer(None)
        writer.append("rows", rows.astype("int64"))
        part = {"part": "held out"} if number else {"part": "train", "shuffle": shuffle}
        found.append(_some(Order(**common, **part, chosen=writer.finish({"rows": len(rows)}))))
    return found


def _some(order: Order) -> Order:
    if order.steps == 0:
        why = f" as full batches of {order.batch_size}" if order.drop_remainder and order.own else ""
        raise ArgumentError(f"shard={order.shard}: nothing is left of {order.in_part:,} rows{why}")
    return order


def finished(
    datasets: list[Any], parts: list[Order], features: Any, make: Callable[[Order], Any] | None = None
) -> Any:
    """The datasets with what is known of them: `rows`, `features`, `class_names`, `labels`, `for_worker`.

    Args:
        datasets: one for each order.
        parts: the orders.
        features: of a table.
        make: makes the dataset of an order, for workers that each read a share of every batch.
    """
    for dataset, order in zip(datasets, parts, strict=True):
        dataset.rows = order.own
        dataset.for_worker = partial(_for_worker, make, order)
        dataset.features = features
        dataset.class_names = dataset.labels = getattr(features, "labels", None)
    return datasets[0] if len(datasets) == 1 else tuple(datasets)


def _for_worker(make: Callable[[Order], Any] | None, order: Order, rank: int, count: int) -> Any:
    """Of each batch every `count`-th row, together the rows of all of it; None where that cannot be had."""
    if make is None or order.shard != (0, 1) or order.batch_size % count or order.own < count:
        return None
    return make(replace(order, shard=(rank, count), batch_size=order.batch_size // count))


def check_sizes(batch_size: Any, seed: Any, shard: Any) -> tuple[int, int, tuple[int, int]]:
    """These three, as what they must be.

    Raises:
        ArgumentError: one is not.
    """
    return whole_number("batch_size", batch_size, 1), whole_number("seed", seed), _shard(shard)


def _shard(value: Any) -> tuple[int, int]:
    try:
        index, count = (operator.index(one) for one in value)
    except (TypeError, ValueError):
        raise ArgumentError(f"shard={value!r} must be (index, count), such as (0, 4)") from None
    if not 0 <= index < count:
        raise ArgumentError(f"shard={value!r}: the index must lie between 0 and {count - 1}")
    return index, count
