"""Arrays in memory as a dataset: the same orders, splits and shards as any other reader."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from stoker.data.order import Order
from stoker.data.splits import Passes, finished, orders
from stoker.data.store import Writer
from stoker.errors import ArgumentError

_BLOCK = 1 << 16


def arrays(
    x: Any,
    y: Any = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: float | tuple[float, ...] | None = None,
    *,
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
) -> Any:
    """Rows of arrays that fit into memory, in batches of `x` or `(x, y)`.

    Args:
        x: an array, or a dict, tuple or list of arrays with equally many rows. They are kept as they are now: later
            changes do not show.
        y: the same, for the labels.

    The other arguments are those of `csv`. Text goes through `frame`.

    Raises:
        ArgumentError: the arrays differ in length, or hold something other than numbers and truth values.
    """
    structure = x if y is None else (x, y)
    leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(structure)]
    rows = _common_length(leaves)
    writer = Writer(None)
    for number, leaf in enumerate(leaves):
        for first in range(0, rows, _BLOCK):
            writer.append(f"array-{number}", leaf[first : first + _BLOCK])
    store = writer.finish({"rows": rows})
    options = Passes(
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        validation_split=validation_split,
        shard=shard,
        drop_remainder=drop_remainder,
    )

    def batch(rows: Any) -> Any:
        chosen = [tf.gather(store.tensor(f"array-{number}"), rows) for number in range(len(leaves))]
        return tf.nest.pack_sequence_as(tf.nest.map_structure(lambda _: 0, structure), chosen)

    parts = orders(rows, options)

    def made(order: Order) -> Any:
        return order.dataset(batch)

    return finished([made(order) for order in parts], parts, None, made)


def _common_length(leaves: list[Any]) -> int:
    if not leaves:
        raise ArgumentError("arrays: there is nothing to read")
    for leaf in leaves:
        if leaf.ndim == 0 or leaf.dtype.kind not in "biufc":
            raise ArgumentError(f"arrays: give arrays of numbers, not {leaf.dtype} of shape {leaf.shape}")
    lengths = {len(leaf) for leaf in leaves}
    if len(lengths) > 1:
        raise ArgumentError(f"arrays: the arrays have different numbers of rows: {sorted(lengths)}")
    if lengths == {0}:
        raise ArgumentError("arrays: there are no rows")
    return lengths.pop()
