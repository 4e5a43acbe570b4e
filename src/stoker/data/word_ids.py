"""Texts as word ids: split once, kept in a store, and gathered in every epoch into batches of similar length."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf

from stoker.data import cache
from stoker.data.array_types import Array, Integers
from stoker.data.order import Epoch, Order, skip_autograph
from stoker.data.store import Store, Writer
from stoker.data.tables import Table
from stoker.data.text_files import TEXT
from stoker.errors import ArgumentError
from stoker.tf_internals.keras_layers import split_texts
from stoker.tf_internals.types import Dataset, Layer, Nest, Tensor
from stoker.units import quantity

# The number of batches whose texts are sorted by length together, before the batches are shuffled.
_WINDOW = 50
_AT_ONCE = 1024
_BLOCK = 1 << 22
# The tokens before the first word: padding, and the one for all words that are not in the vocabulary.
_SPECIAL = ("", "[UNK]")
_UNKNOWN = 1
# Stands in place of a row in a batch that has fewer rows than the others.
_NONE = -1


class WordIds:
    """The word ids of all texts, and the layer that makes them."""

    def __init__(self, store: Store, layer: Layer) -> None:
        self._store, self.layer = store, layer

    @classmethod
    def of(
        cls,
        table: Table,
        training: Order,
        max_tokens: int,
        key: list[Any],
        state: list[Any] | None,
        where: cache.CachePlace,
    ) -> WordIds:
        """Return the ids, from the cache or made now, with a vocabulary of the training texts.

        Args:
            table: the table with the texts.
            training: the rows that the vocabulary is taken from.
            max_tokens: the size of the vocabulary; two tokens are not words.
            key: the source's key in the cache.
            state: the state of the source's files.
            where: see `cache.load_or_make`.

        Raises:
            ArgumentError: the training texts have no words.
        """
        store = cache.load_or_make(
            lambda writer: _write(table, training, max_tokens, writer),
            ["words", key, max_tokens, training.name_of_part()],
            state,
            where,
        )
        layer = _layer(max_tokens)
        layer.set_vocabulary(store.meta["vocabulary"])
        return cls(store, layer)

    def dataset(self, order: Order, labels: Callable[[Tensor], Tensor] | None, most: int | None) -> Dataset:
        """Return batches of similar length: each window of the epoch's order is sorted, cut into batches, and shuffled.

        Args:
            order: the order of the rows.
            labels: gives the labels of chosen rows, in the graph; None for only ids.
            most: cut texts off after this many words.
        """
        window = order.batch_size * _WINDOW

        def rows_of_batches(number: Tensor, epoch: Epoch) -> Tensor:
            rows = order.places(number * window, (number + 1) * window, epoch)
            rows = tf.gather(rows, tf.argsort(_lengths(self._store.tensor("ends"), rows), stable=True))
            if order.drop_remainder:
                rows = rows[: tf.size(rows) // order.batch_size * order.batch_size]
            missing = -tf.size(rows) % order.batch_size
            batches = tf.reshape(tf.pad(rows, [[0, missing]], constant_values=_NONE), [-1, order.batch_size])
            if not order.shuffle:
                return batches
            place = tf.range(tf.shape(batches, tf.int64)[0])
            seed = tf.random.fold_in(order.words("batches", epoch[0]), number)
            return tf.gather(batches, tf.random.experimental.stateless_shuffle(place, seed))

        def batch(rows: Tensor) -> Nest:
            rows = rows[: tf.math.count_nonzero(rows != _NONE)]
            words = _pad(self._store.tensor("ids"), self._store.tensor("ends"), rows, most)
            return words if labels is None else (words, labels(rows))

        windows = order.numbers(-(-order.own // window)).map(skip_autograph(rows_of_batches))
        return order.batches(windows.unbatch(), batch)


def _layer(max_tokens: int) -> Layer:
    import keras

    return keras.layers.TextVectorization(max_tokens=max_tokens)


def _write(table: Table, training: Order, max_tokens: int, fresh: Callable[[], Writer]) -> Store:
    """Write the ids of all texts one after the other, and where each text ends."""
    # The vocabulary is known only after the last text; until then, every word has a number of its own.
    with tempfile.TemporaryFile() as numbers:
        ends, counted = _split(table, training, numbers)
        vocabulary, ids = _vocabulary(counted, max_tokens)
        if not vocabulary:
            raise ArgumentError(
                f"{quantity(training.in_part, 'training text')} without words: there is nothing to learn from"
            )
        writer = fresh()
        try:
            writer.append("ends", ends)
            numbers.seek(0)
            while (block := np.frombuffer(numbers.read(_BLOCK), np.int32)).size:
                writer.append("ids", ids[block])
            return writer.finish({"rows": training.rows, "vocabulary": [*_SPECIAL, *vocabulary]})
        finally:
            writer.close()


def _split(table: Table, training: Order, numbers: BinaryIO) -> tuple[Integers, dict[bytes, int]]:
    """Write the number of every word of every text; words are numbered as they appear.

    Returns:
        Where each text ends, and all words in the order of their numbers, with their counts in the training texts.
    """
    layer = _layer(max_tokens=len(_SPECIAL) + 1)

    @skip_autograph
    def split(texts: Tensor) -> tuple[Tensor, ...]:
        words = split_texts(layer, texts)
        return (words.row_lengths(), *tf.unique(words.values))

    known: dict[bytes, int] = {}
    counts = np.zeros(0, np.int64)
    lengths: list[Integers] = []
    learned_from, first = training.training_mask(), 0
    texts = table.texts(TEXT, Order(training.rows, _AT_ONCE))
    for in_text, words, places in texts.map(split, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True):
        lengths.append(in_text.numpy())
        own = np.array([known.setdefault(word, len(known)) for word in words.numpy()], np.int32)
        block = own[places.numpy()]
        numbers.write(block.data)
        if learned_from is not None:
            block = block[np.repeat(learned_from[first : first + len(in_text)], lengths[-1])]
        counts = np.bincount(block, minlength=len(known)) + np.pad(counts, (0, len(known) - len(counts)))
        first += len(in_text)
    ends = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    return ends, dict(zip(known, counts.tolist(), strict=True))


def _vocabulary(counted: dict[bytes, int], max_tokens: int) -> tuple[list[str], Array]:
    """Return the words that `TextVectorization.adapt` would keep: the most frequent; in a tie, the last in byte order.

    Returns:
        The words, and the id of every word that was counted.
    """
    order = sorted(((count, word) for word, count in counted.items() if count), reverse=True)
    kept = [word for _, word in order[: max_tokens - len(_SPECIAL)]]
    cut = next((word for word in kept if word.endswith(b"\0")), None)
    if cut is not None:
        # Keras keeps words in a NumPy array, which cuts off NULs.
        raise ArgumentError(f"a text has the word {cut.decode()!r}: remove the NUL characters")
    places = {word: place for place, word in enumerate(kept, len(_SPECIAL))}
    ids = np.array([places.get(word, _UNKNOWN) for word in counted], np.int32)
    return [word.decode() for word in kept], ids


def _lengths(ends: Tensor, rows: Tensor) -> Tensor:
    return tf.gather(ends, rows + 1) - tf.gather(ends, rows)


def _pad(ids: Tensor, ends: Tensor, rows: Tensor, most: int | None) -> Tensor:
    """Return, in a graph, the ids of chosen texts as the layer gives them: int64, padded with 0 to the longest."""
    first, last = tf.gather(ends, rows), tf.gather(ends, rows + 1)
    if most is not None:
        last = tf.minimum(last, first + most)
    spans = tf.ragged.range(first, last)
    return tf.cast(spans.with_values(tf.gather(ids, spans.values)).to_tensor(), tf.int64)
