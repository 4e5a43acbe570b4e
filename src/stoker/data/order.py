"""Decide which rows a batch holds: a function of (seed, epoch, batch number) alone, computed in the graph.

A full shuffle needs no buffer: `permutation` computes the row at each place directly. The n-th pass over a dataset uses
the n-th key that the seed yields. So every process that makes the same dataset sees the same orders, and TensorFlow
saves an iterator's place as a few numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from stoker.data.array_types import Mask
from stoker.data.permutation import make_tables, permute
from stoker.data.store import Store
from stoker.tf_internals.pipelines import ScalarSource
from stoker.tf_internals.types import Dataset, Nest, Tensor

# The version of how shuffles, splits and draws follow from the seed. A checkpoint stores it, as a run with another
# version would resume in another order. The first version had only about 256 orders for a seed.
VERSION = 2
# The number of batches to prefetch: enough to hide a slow one. By default, TensorFlow would keep hundreds.
AHEAD = 8
# The number of bits that fit into a float32 between 0 and 1.
_BITS = 24
Function = TypeVar("Function", bound=Callable[..., object])
# Draws a random number from 0 to 1 for each row, for a given purpose.
Draw: TypeAlias = Callable[[str], Tensor]
# Makes one batch from another, with random numbers.
BatchChange: TypeAlias = Callable[[Nest, Draw], Nest]
# The key of an epoch, and the tables of its permutation if it is shuffled.
Epoch: TypeAlias = tuple[Tensor, ...]


@dataclass(frozen=True)
class Order:
    """The rows of one part of the data, in batches.

    Attributes:
        rows: the number of rows in all parts.
        batch_size: rows per batch; the last batch may have fewer.
        shuffle: shuffle all rows differently in every epoch; otherwise keep the order of the files.
        seed: the seed of the shuffles and of the split.
        held_out: how many rows are held out.
        part: "all", "train" or "held out".
        split_at_random: whether the held-out rows are drawn by the seed; otherwise they are the last ones.
        shard: this process takes every `shard[1]`-th row from place `shard[0]` of the epoch's order.
        drop_remainder: leave out a last batch that is not full.
        chosen: the row numbers of this part, if they follow no rule.
    """

    rows: int
    batch_size: int
    shuffle: bool = False
    seed: int = 0
    held_out: int = 0
    part: str = "all"
    split_at_random: bool = False
    shard: tuple[int, int] = (0, 1)
    drop_remainder: bool = False
    chosen: Store | None = field(default=None, compare=False, repr=False)

    @property
    def in_part(self) -> int:
        """The number of rows in this part, over all shards."""
        if self.chosen is not None:
            return self.chosen.rows
        return {"all": self.rows, "train": self.rows - self.held_out, "held out": self.held_out}[self.part]

    @property
    def own(self) -> int:
        """The number of rows that this process reads in an epoch."""
        return len(range(self.shard[0], self.in_part, self.shard[1]))

    @property
    def steps(self) -> int:
        """The number of batches in an epoch."""
        return self.own // self.batch_size if self.drop_remainder else -(-self.own // self.batch_size)

    def places(self, first: Tensor, last: Tensor, epoch: Epoch) -> Tensor:
        """Return, in a graph, the rows at places `first` to `last` (of this process) in this epoch."""
        place = self._find_own_places(first, last)
        if self.shuffle:
            place = permute(place, epoch[1:], self.in_part)
        if self.chosen is not None:
            return tf.gather(self.chosen.tensor("rows"), place)
        if self.part == "train" and self.split_at_random:
            return permute(place + self.held_out, self._split, self.rows)
        if self.part == "held out":
            if self.split_at_random:
                return permute(place, self._split, self.rows)
            return place + (self.rows - self.held_out)
        return place

    def draws(self, first: Tensor, last: Tensor, epoch: Epoch, purpose: str) -> Tensor:
        """Return, in a graph, a random number from 0 to 1 for each place, the same for any number of processes."""
        place = self._find_own_places(first, last)
        words = tf.broadcast_to(self.words(purpose, epoch[0]), [tf.size(place), 2])
        hashes = tf.raw_ops.Fingerprint(
            data=tf.concat([place[:, None], words], 1), method=tf.constant("farmhash64")
        )
        bits = tf.bitwise.right_shift(tf.bitcast(hashes, tf.uint64), tf.constant(64 - _BITS, tf.uint64))
        return tf.cast(bits, tf.float32) / 2**_BITS

    def _find_own_places(self, first: Tensor, last: Tensor) -> Tensor:
        return tf.range(first, tf.minimum(last, self.own)) * self.shard[1] + self.shard[0]

    def tables(self, purpose: str, key: Tensor, count: int) -> tuple[Tensor, ...]:
        """Return, in a graph, a permutation of `count` items for `permute`, by the seed, purpose and epoch's key."""
        return make_tables(int(self._digest(purpose)[0]), key, count)

    def words(self, purpose: str, key: Tensor) -> Tensor:
        """Return, in a graph, two int64 to seed other generators, from the seed, the purpose and the epoch's key."""
        return tf.bitwise.bitwise_xor(tf.constant(self._digest(purpose).view("<i8")), key)

    def _digest(self, purpose: str) -> npt.NDArray[np.uint64]:
        """Return two numbers that differ for every seed and purpose."""
        text = f"{VERSION} {purpose} {self.seed}"
        return np.frombuffer(hashlib.blake2b(text.encode(), digest_size=16).digest(), "<u8")

    @cached_property
    def _split(self) -> tuple[Tensor, ...]:
        """The permutation whose first rows are held out."""
        with tf.init_scope(), tf.device("CPU"):
            return self.tables("split", tf.zeros([2], tf.int64), self.rows)

    def name_of_part(self) -> list[str | int]:
        """Return the identity of this part of the rows, as JSON."""
        if self.chosen is not None:
            return [hashlib.blake2b(self.chosen.array("rows").tobytes(), digest_size=16).hexdigest()]
        version = [VERSION] if self.held_out and self.split_at_random else []
        return [self.held_out, self.split_at_random, self.seed if self.held_out else 0, *version]

    def training_mask(self) -> Mask | None:
        """Return which rows are training rows; None if all are."""
        if self.chosen is not None:
            listed = np.zeros(self.rows, bool)
            listed[self.chosen.array("rows")] = True
            return listed
        if not self.held_out:
            return None
        mask = np.ones(self.rows, bool)
        if not self.split_at_random:
            mask[self.rows - self.held_out :] = False
            return mask
        for first in range(0, self.held_out, 1 << 20):
            place = tf.range(first, min(first + (1 << 20), self.held_out), dtype=tf.int64)
            mask[permute(place, self._split, self.rows).numpy()] = False
        return mask

    def dataset(self, make: Callable[[Tensor], Nest], change: BatchChange | None = None) -> Dataset:
        """Return the batches of this part.

        Args:
            make: makes a batch from its row numbers, in the graph.
            change: changes a batch at random, in the graph.
        """

        def batch(number: Tensor, epoch: Epoch) -> Nest:
            first, last = number * self.batch_size, (number + 1) * self.batch_size
            rows = self.places(first, last, epoch)
            if self.own % self.batch_size == 0 or self.drop_remainder:
                rows.set_shape([self.batch_size])
            made = make(rows)
            return made if change is None else change(made, lambda what: self.draws(first, last, epoch, what))

        return self.batches(self.numbers(self.steps, drawing=change is not None), batch)

    def numbers(self, count: int, *, drawing: bool = False) -> Dataset:
        """Return a dataset whose passes are `(number, epoch)`, for the numbers below `count`.

        A `map` over it starts sooner than a dataset made for each epoch, whose functions are prepared again each time.

        Args:
            count: elements per pass.
            drawing: whether the epoch is used for `draws`, too.
        """

        def repeat(key: Tensor) -> Dataset:
            return tf.data.Dataset.from_tensors(self.epoch(key)).repeat(count)

        # The numbers of `enumerate` would be a dataset that nothing can look into (`store.pipelines`).
        return tf.data.Dataset.zip(
            (tf.data.Dataset.range(count), self._derive_from_key(repeat, self.shuffle or drawing))
        )

    def epoch(self, key: Tensor) -> Epoch:
        """Return, in a graph, the epoch with this key, for `places` and `draws`."""
        return (key, *(self.tables("epoch", key, self.in_part) if self.shuffle else ()))

    def batches(self, dataset: Dataset, make: Callable[..., Nest]) -> Dataset:
        """Return the batches that `make` makes from the elements, prefetched. A pass has `steps` elements."""
        made = dataset.map(skip_autograph(make), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return self._set_length(made).prefetch(AHEAD)

    def passes(self, epoch: Callable[[Tensor], Dataset]) -> Dataset:
        """Return a dataset in which `epoch` makes each pass from the epoch's key, with `steps` elements."""
        return self._set_length(self._derive_from_key(epoch, self.shuffle))

    def _derive_from_key(self, epoch: Callable[[Tensor], Dataset], random: bool) -> Dataset:
        if not random:
            # Nothing reads this number; with it, iterators saved by the first version can be restored.
            return EpochKeys(self.seed).take(1).flat_map(skip_autograph(epoch))
        return self.key().flat_map(skip_autograph(epoch))

    def key(self) -> Dataset:
        """Return a dataset in which each pass is the key of the next epoch: two int64."""
        return EpochKeys(self.seed, VERSION).batch(2, drop_remainder=True).take(1)

    def _set_length(self, dataset: Dataset) -> Dataset:
        return dataset.apply(tf.data.experimental.assert_cardinality(self.steps))


def skip_autograph(function: Function) -> Function:
    """Mark the function so that AutoGraph does not convert it, and return it."""
    kept: Function = tf.autograph.experimental.do_not_convert(function)
    return kept


class EpochKeys(ScalarSource):
    """Endless random 32-bit numbers, different in each pass: like `Dataset.random`, but independent of the global seed.

    Attributes:
        order_version: the `VERSION` of the orders that follow from the numbers; 0 if none do.
    """

    def __init__(self, seed: int, version: int = 0) -> None:
        self._seed, self.order_version = seed, version
        super().__init__(
            tf.raw_ops.RandomDatasetV2,
            seed=np.int64(seed & 0x7FFFFFFF),
            seed2=np.int64((seed >> 31) & 0x7FFFFFFF | 1 << 32),
            seed_generator=tf.raw_ops.DummySeedGenerator(),
            rerandomize_each_iteration=True,
        )
