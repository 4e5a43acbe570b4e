"""Texts as ids of words: split once, kept in a store, gathered in every epoch into batches of like length."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf

from stoker.data import cache
from stoker.data.order import Order, unconverted
from stoker.data.store import Store, Writer
from stoker.data.tables import Table
from stoker.data.text_files import TEXT
from stoker.errors import ArgumentError
from stoker.tf_internals.keras_layers import split_texts

# So many batches are drawn, sorted by length and shuffled among themselves.
_WINDOW = 50
_AT_ONCE = 1024
_BLOCK = 1 << 22
# Before the first word: padding, and what stands for all words that are not kept.
_SPECIAL = ("", "[UNK]")
_UNKNOWN = 1
# In place of a row, where a batch has fewer than the others.
_NONE = -1


class Words:
    """The ids of all texts, and the layer that makes them."""

    def __init__(self, store: Store, layer: Any) -> None:
        self._store, self.layer = store, layer

    @classmethod
    def of(
        cls,
        table: Table,
        training: Order,
        max_tokens: int,
        key: list[Any],
        state: list[Any] | None,
        where: Any,
    ) -> Words:
        """From the cache, or made now, with a vocabulary of the training texts.

        Args:
            table: with the texts.
            training: the rows the vocabulary is of.
            max_tokens: of the vocabulary, which has two that are no words.
            key: what the cache knows the source by.
            state: of its files.
            where: see `cache.cached`.

        Raises:
            ArgumentError: the training texts hold no words.
        """
        store = cache.cached(
            lambda writer: _written(table, training, max_tokens, writer),
            ["words", key, max_tokens, training.name_of_part()],
            state,
            where,
        )
        layer = _layer(max_tokens)
        layer.set_vocabulary(store.meta["vocabulary"])
        return cls(store, layer)

    def dataset(self, order: Order, labels: Callable[[Any], Any] | None, most: int | None) -> Any:
        """Batches of like length: each window of the epoch's order is sorted, cut and its batches shuffled.

        Args:
            order: of the rows.
            labels: gives, in the graph, the labels of chosen rows. None for ids alone.
            most: cut texts off after so many words.
        """
        window = order.batch_size * _WINDOW

        def rows_of_batches(number: Any, epoch: Any) -> Any:
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

        def batch(rows: Any) -> Any:
            rows = rows[: tf.math.count_nonzero(rows != _NONE)]
            words = _padded(self._store.tensor("ids"), self._store.tensor("ends"), rows, most)
            return words if labels is None else (words, labels(rows))

        windows = order.numbered(-(-order.own // window)).map(unconverted(rows_of_batches))
        return order.batches(windows.unbatch(), batch)


def _layer(max_tokens: int) -> Any:
    import keras

    return keras.layers.TextVectorization(max_tokens=max_tokens)


def _written(table: Table, training: Order, max_tokens: int, fresh: Callable[[], Writer]) -> Store:
    """The ids of all texts one after the other, and where each text ends."""
    # Which words are kept is known after the last text: until then every word has a number of its own.
    with tempfile.TemporaryFile() as numbers:
        ends, counted = _split(table, training, numbers)
        vocabulary, ids = _vocabulary(counted, max_tokens)
        if not vocabulary:
            raise ArgumentError(f"the {training.in_part:,} texts to learn from hold no words")
        writer = fresh()
        try:
            writer.append("ends", ends)
            numbers.seek(0)
            while (block := np.frombuffer(numbers.read(_BLOCK), np.int32)).size:
                writer.append("ids", ids[block])
            return writer.finish({"rows": training.rows, "vocabulary": [*_SPECIAL, *vocabulary]})
        finally:
            writer.close()


def _split(table: Table, training: Order, numbers: BinaryIO) -> tuple[Any, dict[bytes, int]]:
    """Write the number of every word of every text, the first that is met having number 0.

    Returns:
        Where each text ends, and all words in the order of their numbers, with how often the training texts have them.
    """
    layer = _layer(max_tokens=len(_SPECIAL) + 1)

    @unconverted
    def split(texts: Any) -> Any:
        words = split_texts(layer, texts)
        return (words.row_lengths(), *tf.unique(words.values))

    known: dict[bytes, int] = {}
    counts: Any = np.zeros(0, np.int64)
    lengths: list[Any] = []
    learned_from, first = training.training_mask(), 0
    texts = table.texts(TEXT, Order(training.rows, _AT_ONCE))
    for in_text, words, places in texts.map(split, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True):
        lengths.append(in_text.numpy())
        own: Any = np.array([known.setdefault(word, len(known)) for word in words.numpy()], np.int32)
        block = own[places.numpy()]
        numbers.write(block.data)
        if learned_from is not None:
            block = block[np.repeat(learned_from[first : first + len(in_text)], lengths[-1])]
        counts = np.bincount(block, minlength=len(known)) + np.pad(counts, (0, len(known) - len(counts)))
        first += len(in_text)
    ends = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    return ends, dict(zip(known, counts.tolist(), strict=True))


def _vocabulary(counted: dict[bytes, int], max_tokens: int) -> tuple[list[str], Any]:
    """The words that are kept, as `TextVectorization.adapt` would: the most frequent, then the last by their bytes.

    Returns:
        The words, and the id of every word that was counted.
    """
    order = sorted(((count, word) for word, count in counted.items() if count), reverse=True)
    kept = [word for _, word in order[: max_tokens - len(_SPECIAL)]]
    cut = next((word for word in kept if word.endswith(b"\0")), None)
    if cut is not None:
        # Keras' list of words is one of NumPy's, which would take it for another word.
        raise ArgumentError(f"a text has the word {cut.decode()!r}: remove the NUL characters")
    places = {word: place for place, word in enumerate(kept, len(_SPECIAL))}
    ids = np.array([places.get(word, _UNKNOWN) for word in counted], np.int32)
    return [word.decode() for word in kept], ids


def _lengths(ends: Any, rows: Any) -> Any:
    return tf.gather(ends, rows + 1) - tf.gather(ends, rows)


def _padded(ids: Any, ends: Any, rows: Any, most: int | None) -> Any:
    """In a graph: the ids of chosen texts, as the layer gives them: int64, padded with 0 to the longest."""
    first, last = tf.gather(ends, rows), tf.gather(ends, rows + 1)
    if most is not None:
        last = tf.minimum(last, first + most)
    spans = tf.ragged.range(first, last)
    return tf.cast(spans.with_values(tf.gather(ids, spans.values)).to_tensor(), tf.int64)
