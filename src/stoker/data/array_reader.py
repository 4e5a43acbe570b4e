"""Arrays in memory as a dataset, with the same orders, splits and shards as in the other readers."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from stoker.data.array_types import Array
from stoker.data.splits import Passes, Split, make_datasets, orders
from stoker.data.store import Writer
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Dataset, Nest, Tensor

_BLOCK = 1 << 16


def arrays(
    x: Nest,
    y: Nest = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    *,
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
) -> Dataset:
    """Read rows of arrays that fit into memory, in batches of `x` or `(x, y)`.

    Args:
        x: an array, or a dict, tuple or list of arrays with the same number of rows. They are copied: later changes
            have no effect.
        y: the labels, in the same form.

    The other arguments are those of `csv`. Text goes through `frame`.

    Raises:
        ArgumentError: the arrays differ in length, or do not hold numbers or truth values.
    """
    structure = x if y is None else (x, y)
    leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(structure)]
    rows = _common_length(leaves)
    writer = Writer(None)
    for number, leaf in enumerate(leaves):
        for first in range(0, rows, _BLOCK):
            writer.append(f"array-{number}", leaf[first : first + _BLOCK])
    store = writer.finish({"rows": rows})
    options = Passes(batch_size, shuffle, seed, validation_split, shard, drop_remainder)

    def batch(rows: Tensor) -> Nest:
        chosen = [tf.gather(store.tensor(f"array-{number}"), rows) for number in range(len(leaves))]
        return tf.nest.pack_sequence_as(tf.nest.map_structure(lambda _: 0, structure), chosen)

    return make_datasets(orders(rows, options), lambda order: order.dataset(batch))


def _common_length(leaves: list[Array]) -> int:
    if not leaves:
        raise ArgumentError("arrays: give at least one array")
    for leaf in leaves:
        if leaf.ndim == 0 or leaf.dtype.kind not in "biufc":
            raise ArgumentError(f"arrays: give arrays of numbers, not {leaf.dtype} of shape {leaf.shape}")
    lengths = {len(leaf) for leaf in leaves}
    if len(lengths) > 1:
        raise ArgumentError(
            f"arrays: the arrays have different numbers of rows, {sorted(lengths)}: make them equal"
        )
    if lengths == {0}:
        raise ArgumentError("arrays: the arrays have no rows")
    return lengths.pop()
