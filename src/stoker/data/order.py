"""Which rows a batch holds: a function of (seed, epoch, batch number) alone, computed in the graph.

A full shuffle needs no buffer: `permutation` gives the row at each place by itself. The n-th pass over a dataset has
the n-th key that the seed yields, so every process that makes the same dataset goes through the same orders, and
TensorFlow saves an iterator's place as a few numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.data.permutation import make_tables, permute
from stoker.data.store import Store
from stoker.tf_internals.pipelines import ScalarSource

# How shuffles, splits and draws follow from the seed. A checkpoint has it: with another one a run would go on in
# another order. The first had only about 256 orders for a seed.
VERSION = 2
# Batches made ahead: enough to hide one that takes longer; left to itself TensorFlow keeps hundreds.
AHEAD = 8
# A float32 between 0 and 1 has room for so many bits.
_BITS = 24
# What makes another batch of a batch: given it, and what draws a number for each row, for a purpose.
Change = Callable[[Any, Callable[[str], Any]], Any]


@dataclass(frozen=True)
class Order:
    """The rows of one part of the data, in batches.

    Attributes:
        rows: of all the data.
        batch_size: rows a batch; the last may have fewer.
        shuffle: another full shuffle in every epoch; otherwise the order of the files.
        seed: of the shuffles and of the split.
        held_out: how many rows are put aside.
        part: "all", "train" or "held out".
        split_at_random: the rows put aside are drawn by the seed; otherwise they are the last ones.
        shard: this process takes every `shard[1]`-th row from place `shard[0]` of the epoch's order.
        drop_remainder: leave out a last batch that is not full.
        chosen: the numbers of the rows of this part, where they follow no rule.
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
        """Rows of this part, over all shards."""
        if self.chosen is not None:
            return self.chosen.rows
        return {"all": self.rows, "train": self.rows - self.held_out, "held out": self.held_out}[self.part]

    @property
    def own(self) -> int:
        """Rows this process goes through in an epoch."""
        return len(range(self.shard[0], self.in_part, self.shard[1]))

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return self.own // self.batch_size if self.drop_remainder else -(-self.own // self.batch_size)

    def places(self, first: Any, last: Any, epoch: Any) -> Any:
        """In a graph: the rows at places `first` to `last` (of this process) in this epoch, one of `numbered`."""
        place = self._own_places(first, last)
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

    def draws(self, first: Any, last: Any, epoch: Any, purpose: str) -> Any:
        """In a graph: a random number from 0 to 1 for each place, the same however many processes there are."""
        place = self._own_places(first, last)
        words = tf.broadcast_to(self.words(purpose, epoch[0]), [tf.size(place), 2])
        hashes = tf.raw_ops.Fingerprint(
            data=tf.concat([place[:, None], words], 1), method=tf.constant("farmhash64")
        )
        bits = tf.bitwise.right_shift(tf.bitcast(hashes, tf.uint64), tf.constant(64 - _BITS, tf.uint64))
        return tf.cast(bits, tf.float32) / 2**_BITS

    def _own_places(self, first: Any, last: Any) -> Any:
        return tf.range(first, tf.minimum(last, self.own)) * self.shard[1] + self.shard[0]

    def tables(self, purpose: str, key: Any, count: int) -> tuple[Any, ...]:
        """In a graph: a permutation of `count` things, for `permute`, by the seed, the purpose and the epoch's key."""
        return make_tables(int(self._digest(purpose)[0]), key, count)

    def words(self, purpose: str, key: Any) -> Any:
        """In a graph: a seed for other generators, two int64, by the seed, the purpose and the epoch's key."""
        return tf.bitwise.bitwise_xor(tf.constant(self._digest(purpose).view("<i8")), key)

    def _digest(self, purpose: str) -> Any:
        """Two numbers of 64 bits that have nothing to do with those of another seed or purpose."""
        text = f"{VERSION} {purpose} {self.seed}"
        return np.frombuffer(hashlib.blake2b(text.encode(), digest_size=16).digest(), "<u8")

    @cached_property
    def _split(self) -> tuple[Any, ...]:
        """The permutation whose first rows are held out."""
        with tf.init_scope(), tf.device("CPU"):
            return self.tables("split", tf.zeros([2], tf.int64), self.rows)

    def name_of_part(self) -> list[Any]:
        """What tells the rows of this part from those of another."""
        if self.chosen is not None:
            return [hashlib.blake2b(self.chosen.array("rows").tobytes(), digest_size=16).hexdigest()]
        version = [VERSION] if self.held_out and self.split_at_random else []
        return [self.held_out, self.split_at_random, self.seed if self.held_out else 0, *version]

    def training_mask(self) -> Any:
        """Which rows are in the training part, as NumPy truth values; None when all are."""
        if self.chosen is not None:
            listed: Any = np.zeros(self.rows, bool)
            listed[self.chosen.array("rows")] = True
            return listed
        if not self.held_out:
            return None
        mask: Any = np.ones(self.rows, bool)
        if not self.split_at_random:
            mask[self.rows - self.held_out :] = False
            return mask
        for first in range(0, self.held_out, 1 << 20):
            place = tf.range(first, min(first + (1 << 20), self.held_out), dtype=tf.int64)
            mask[permute(place, self._split, self.rows).numpy()] = False
        return mask

    def dataset(self, make: Callable[[Any], Any], change: Change | None = None) -> Any:
        """The batches of this part.

        Args:
            make: called in the graph: makes a batch from the numbers of its rows.
            change: makes another batch of a batch, with random numbers for its rows.
        """

        def batch(number: Any, epoch: Any) -> Any:
            first, last = number * self.batch_size, (number + 1) * self.batch_size
            rows = self.places(first, last, epoch)
            if self.own % self.batch_size == 0 or self.drop_remainder:
                rows.set_shape([self.batch_size])
            made = make(rows)
            return made if change is None else change(made, lambda what: self.draws(first, last, epoch, what))

        return self.batches(self.numbered(self.steps, drawing=change is not None), batch)

    def numbered(self, count: int, *, drawing: bool = False) -> Any:
        """A dataset whose passes are `(number, epoch)`, of the numbers below `count`.

        A `map` of them begins sooner than a dataset made for each epoch, whose functions are prepared again each time.

        Args:
            count: elements of a pass.
            drawing: the epoch is for `draws`, too.
        """

        def repeat(key: Any) -> Any:
            return tf.data.Dataset.from_tensors(self.epoch(key)).repeat(count)

        # Not `enumerate`, whose numbers are a dataset that nobody can look into (`store.pipelines`).
        return tf.data.Dataset.zip(
            (tf.data.Dataset.range(count), self._of_key(repeat, self.shuffle or drawing))
        )

    def epoch(self, key: Any) -> tuple[Any, ...]:
        """In a graph: what `places` and `draws` take, of the epoch with this key."""
        return (key, *(self.tables("epoch", key, self.in_part) if self.shuffle else ()))

    def batches(self, dataset: Any, make: Callable[..., Any]) -> Any:
        """What `make` makes of the elements, of which a pass has `steps`: batches, made ahead."""
        made = dataset.map(unconverted(make), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return self._with_length(made).prefetch(AHEAD)

    def passes(self, epoch: Callable[[Any], Any]) -> Any:
        """A dataset whose every pass is what `epoch` makes of the epoch's key; it must have `steps` elements."""
        return self._with_length(self._of_key(epoch, self.shuffle))

    def _of_key(self, epoch: Callable[[Any], Any], random: bool) -> Any:
        if not random:
            # One number, which nothing looks at: iterators that the first version saved are restored.
            return EpochKeys(self.seed).take(1).flat_map(unconverted(epoch))
        return self.key().flat_map(unconverted(epoch))

    def key(self) -> Any:
        """A dataset whose every pass is the key of the next epoch: two int64."""
        return EpochKeys(self.seed, VERSION).batch(2, drop_remainder=True).take(1)

    def _with_length(self, dataset: Any) -> Any:
        return dataset.apply(tf.data.experimental.assert_cardinality(self.steps))


def unconverted(function: Callable[..., Any]) -> Any:
    """There is nothing in it for AutoGraph to convert."""
    return tf.autograph.experimental.do_not_convert(function)


class EpochKeys(ScalarSource):
    """An endless row of random numbers of 32 bits, another one in each pass: `Dataset.random` without the global seed.

    Attributes:
        order_version: the `VERSION` of what follows from the numbers; 0 where nothing does.
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
