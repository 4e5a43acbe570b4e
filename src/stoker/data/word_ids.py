"""Texts as ids of words: split once, kept in a store, gathered in every epoch into batches of like length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.data import cache
from stoker.data.order import AHEAD, Order
from stoker.data.store import Store, Writer
from stoker.data.tables import Table
from stoker.data.text_files import TEXT
from stoker.errors import ArgumentError

# So many batches are drawn, sorted by length and shuffled among themselves.
_WINDOW = 50
_AT_ONCE = 1024
# Ids that are no words: padding, and unknown.
_SPECIAL = 2


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

    def dataset(
        self, order: Order, labels: Callable[[], Callable[[Any], Any]] | None, most: int | None
    ) -> Any:
        """Batches of like length: each window of the epoch's order is sorted, cut and its batches shuffled.

        Args:
            order: of the rows.
            labels: called in the graph once an epoch: gives what reads the labels of chosen rows. None for ids alone.
            most: cut texts off after so many words.
        """
        window = order.batch_size * _WINDOW

        def epoch(key: Any) -> Any:
            ids, ends = self._store.tensor("ids"), self._store.tensor("ends")
            label_of = None if labels is None else labels()

            def rows_of_batches(number: Any) -> Any:
                rows = order.places(number * window, (number + 1) * window, key)
                rows = tf.gather(rows, tf.argsort(_lengths(ends, rows), stable=True))
                short = 0 if order.drop_remainder else order.batch_size - 1
                place = tf.range((tf.size(rows, tf.int64) + short) // order.batch_size)
                if order.shuffle:
                    mixed = tf.random.experimental.stateless_shuffle(place, tf.stack([key, number]))
                    place = tf.ensure_shape(mixed, [None])
                return tf.data.Dataset.from_tensor_slices(place).map(
                    lambda one: rows[one * order.batch_size : (one + 1) * order.batch_size]
                )

            def batch(rows: Any) -> Any:
                words = _padded(ids, ends, rows, most)
                return words if label_of is None else (words, label_of(rows))

            chosen = tf.data.Dataset.range(-(-order.own // window)).flat_map(rows_of_batches)
            return chosen.map(batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

        return order.passes(epoch).prefetch(AHEAD)


def _layer(max_tokens: int, ragged: bool = False) -> Any:
    import keras

    return keras.layers.TextVectorization(max_tokens=max_tokens, ragged=ragged)


def _written(table: Table, training: Order, max_tokens: int, fresh: Callable[[], Writer]) -> Store:
    """The ids of all texts one after the other, and where each text ends."""
    # Ragged: one long text among many must not pad the others.
    layer = _layer(max_tokens, ragged=True)
    layer.adapt(table.features._texts(TEXT))
    vocabulary = layer.get_vocabulary()
    if len(vocabulary) == _SPECIAL:
        raise ArgumentError(f"the {training.in_part:,} texts to learn from hold no words")
    if "" in vocabulary[_SPECIAL:]:
        # Keras gives it back as the empty word, which is its padding.
        raise ArgumentError("a text has a word of NUL characters alone: remove it")
    texts = table.texts(TEXT, Order(training.rows, _AT_ONCE))
    writer = fresh()
    try:
        writer.append("ends", np.zeros(1, np.int64))
        end = 0
        for words in texts.map(layer, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True):
            ends = words.row_splits.numpy()[1:]
            writer.append("ids", words.values.numpy().astype(np.int32))
            writer.append("ends", ends + end)
            end += int(ends[-1])
        return writer.finish({"rows": training.rows, "vocabulary": vocabulary})
    finally:
        writer.close()


def _lengths(ends: Any, rows: Any) -> Any:
    return tf.gather(ends, rows + 1) - tf.gather(ends, rows)


def _padded(ids: Any, ends: Any, rows: Any, most: int | None) -> Any:
    """In a graph: the ids of chosen texts, as the layer gives them: int64, padded with 0 to the longest."""
    first, last = tf.gather(ends, rows), tf.gather(ends, rows + 1)
    if most is not None:
        last = tf.minimum(last, first + most)
    spans = tf.ragged.range(first, last)
    return tf.cast(spans.with_values(tf.gather(ids, spans.values)).to_tensor(), tf.int64)
