"""Strings in the store: the characters of all, one after the other, and where each one ends."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from stoker.data.store import Store


def strings(store: Store, ends_name: str, points_name: str, rows: Any) -> Any:
    """In a graph: the strings of chosen rows; row `n` lies between ends `n` and `n + 1`."""
    ends = store.tensor(ends_name)
    spans = tf.ragged.range(tf.gather(ends, rows), tf.gather(ends, rows + 1))
    chosen = tf.cast(tf.gather(store.tensor(points_name), spans.values), tf.int32)
    return tf.strings.unicode_encode(spans.with_values(chosen), "UTF-8", errors="strict")
