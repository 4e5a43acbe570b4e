"""Which rows a batch holds: a function of (seed, epoch, batch number) alone, computed in the graph.

A full shuffle needs neither a buffer nor a list of all rows: `RandomIndexShuffle` is a permutation that gives the row
at each place by itself. The n-th pass over a dataset has the n-th key that the seed yields, so every process that makes
the same dataset goes through the same orders, and TensorFlow saves an iterator's place as two numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.ops import gen_dataset_ops
from tensorflow.python.ops import gen_experimental_dataset_ops as experimental_ops

from stoker.data.store import Store

_ROUNDS = 8
# Batches made ahead: enough to hide one that takes longer; left to itself TensorFlow keeps hundreds.
AHEAD = 8
_DRAWN = 2**31
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

    def places(self, first: Any, last: Any, key: Any) -> Any:
        """In a graph: the rows at places `first` to `last` (of this process) in the epoch with this key."""
        place = self._own_places(first, last)
        if self.shuffle:
            place = permuted(place, self._words_of("epoch", key), self.in_part)
        if self.chosen is not None:
            return tf.gather(self.chosen.tensor("rows"), place)
        if self.part == "train" and self.split_at_random:
            return permuted(place + self.held_out, self._words("split"), self.rows)
        if self.part == "held out":
            if self.split_at_random:
                return permuted(place, self._words("split"), self.rows)
            return place + (self.rows - self.held_out)
        return place

    def draws(self, first: Any, last: Any, key: Any, purpose: str) -> Any:
        """In a graph: for each of these places a random number from 0 to 1, the same however many processes there are.

        A permutation of all numbers of 31 bits serves as the generator: it takes a number of its own for each place.
        """
        place = self._own_places(first, last) % _DRAWN
        return tf.cast(permuted(place, self._words_of(purpose, key), _DRAWN), tf.float32) / _DRAWN

    def _own_places(self, first: Any, last: Any) -> Any:
        return tf.range(first, tf.minimum(last, self.own)) * self.shard[1] + self.shard[0]

    def _words_of(self, purpose: str, key: Any) -> Any:
        """Three random words of the seed and the epoch."""
        return tf.concat([tf.bitcast(key, tf.uint32), self._words(purpose)[:1]], 0)

    def _words(self, purpose: str) -> Any:
        """Three random words of the seed: seeds that are near each other must not give like permutations."""
        digest = hashlib.blake2b(f"{purpose} {self.seed}".encode(), digest_size=12).digest()
        return tf.constant(np.frombuffer(digest, "<u4"), tf.uint32)

    def name_of_part(self) -> list[Any]:
        """What tells the rows of this part from those of another."""
        if self.chosen is not None:
            return [hashlib.blake2b(self.chosen.array("rows").tobytes(), digest_size=16).hexdigest()]
        return [self.held_out, self.split_at_random, self.seed if self.held_out else 0]

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
            mask[permuted(place, self._words("split"), self.rows).numpy()] = False
        return mask

    def dataset(self, make: Callable[[Any], Any], change: Change | None = None) -> Any:
        """The batches of this part.

        Args:
            make: called in the graph: makes a batch from the numbers of its rows.
            change: makes another batch of a batch, with random numbers for its rows.
        """

        def batch(number: Any, key: Any) -> Any:
            first, last = number * self.batch_size, (number + 1) * self.batch_size
            rows = self.places(first, last, key)
            if self.own % self.batch_size == 0 or self.drop_remainder:
                rows.set_shape([self.batch_size])
            made = make(rows)
            return made if change is None else change(made, lambda what: self.draws(first, last, key, what))

        return self.batches(self.numbered(self.steps), batch)

    def numbered(self, count: int) -> Any:
        """A dataset whose passes are `(number, key of the epoch)`, of the numbers below `count`.

        A `map` of them begins sooner than a dataset made for each epoch, whose functions are prepared again each time.
        """
        keys = self._of_key(lambda key: tf.data.Dataset.from_tensors(key).repeat(count))
        # Not `enumerate`, whose numbers are a dataset that nobody can look into (`store.pipelines`).
        return tf.data.Dataset.zip((tf.data.Dataset.range(count), keys))

    def batches(self, dataset: Any, make: Callable[..., Any]) -> Any:
        """What `make` makes of the elements, of which a pass has `steps`: batches, made ahead."""
        made = dataset.map(unconverted(make), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return self._with_length(made).prefetch(AHEAD)

    def passes(self, epoch: Callable[[Any], Any]) -> Any:
        """A dataset whose every pass is what `epoch` makes of the epoch's key; it must have `steps` elements."""
        return self._with_length(self._of_key(epoch))

    def _of_key(self, epoch: Callable[[Any], Any]) -> Any:
        return EpochKeys(self.seed).take(1).flat_map(unconverted(epoch))

    def _with_length(self, dataset: Any) -> Any:
        return dataset.apply(tf.data.experimental.assert_cardinality(self.steps))


def unconverted(function: Callable[..., Any]) -> Any:
    """There is nothing in it for AutoGraph to convert."""
    return tf.autograph.experimental.do_not_convert(function)


def permuted(place: Any, seed: Any, count: int) -> Any:
    """In a graph: where a permutation of `count` things puts these places."""
    if count <= 1:
        return place
    return tf.raw_ops.RandomIndexShuffle(
        index=place, seed=seed, max_index=tf.constant(count - 1, place.dtype), rounds=_ROUNDS
    )


class EpochKeys(dataset_ops.DatasetSource):  # type: ignore[misc]
    """An endless row of random numbers, another one in each pass: `Dataset.random` without the global seed."""

    def __init__(self, seed: int) -> None:
        self._name, self._seed = None, seed
        super().__init__(
            experimental_ops.random_dataset_v2(
                seed=np.int64(seed & 0x7FFFFFFF),
                seed2=np.int64((seed >> 31) & 0x7FFFFFFF | 1 << 32),
                seed_generator=gen_dataset_ops.dummy_seed_generator(),
                rerandomize_each_iteration=True,
                **self._common_args,
            )
        )

    @property
    def element_spec(self) -> Any:
        return tf.TensorSpec([], tf.int64)
