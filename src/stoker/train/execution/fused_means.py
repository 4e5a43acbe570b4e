"""The mean of a text's embeddings, its rows of the table added up where they lie.

Keras writes `Embedding` and `GlobalAveragePooling1D` as a gather, a mask and a sum, over an array with a row for each
word of each text, and their gradients over two more. Nothing of that is needed: one kernel adds the rows up, and all
words of a text have the same gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import calls_of, layers_of
from stoker.tf_internals.types import Layer, Model, Tensor
from stoker.train.execution.replaced_calls import is_plain, replaced


class SharedRows(tf.IndexedSlices):  # type: ignore[misc]
    """The gradient of a table, of which all words of a text have one row.

    What does not know of it takes it for an `IndexedSlices`; if nothing does, its values are never computed.
    """

    def __init__(self, of_texts: Tensor, texts: Tensor, words: Tensor, shape: Tensor) -> None:
        self.of_texts, self.texts = of_texts, texts
        super().__init__(tf.gather(of_texts, texts), words, shape)

    def summed(self, of_texts: Tensor, place: Tensor, count: Tensor) -> Tensor:
        """The sum over all words of what each text has in `of_texts`, by `place`, of which there are `count`."""
        return tf.raw_ops.SparseSegmentSumGrad(
            grad=of_texts, indices=place, segment_ids=self.texts, output_dim0=count
        )


def applies(model: Model) -> bool:
    """Whether the model has a mean of embeddings that may be fused."""
    return any(
        _is_embedding(parent.operation) and _takes_plain_words(parent)
        for layer in layers_of(model)
        if _is_mean(layer)
        for node in calls_of(layer)
        for parent in node.parent_nodes
    )


def fused(model: Model) -> AbstractContextManager[None]:
    """What is traced inside has the model's means of embeddings fused."""
    given: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
    layers = layers_of(model)
    embeddings = [(layer, _noted(layer, given)) for layer in layers if _is_embedding(layer)]
    return replaced([*embeddings, *((layer, _mean(layer, given)) for layer in layers if _is_mean(layer))])


def _is_embedding(layer: Layer) -> bool:
    return (
        type(layer) is keras.layers.Embedding
        and is_plain(layer)
        and not layer.lora_enabled
        and layer.quantization_mode is None
    )


def _is_mean(layer: Layer) -> bool:
    return (
        type(layer) is keras.layers.GlobalAveragePooling1D
        and is_plain(layer)
        and layer.data_format == "channels_last"
        and not layer.keepdims
    )


def _takes_plain_words(node: Any) -> bool:
    return not any(
        getattr(words, "sparse", False) or getattr(words, "ragged", False) for words in node.input_tensors
    )


def _noted(layer: Layer, given: dict[int, tuple[Tensor, Tensor, Tensor]]) -> Callable[[Tensor], Tensor]:
    """The layer as it is; whose mean is taken of its answer can ask for the words. The gather is pruned then."""
    plain = layer.call

    def call(inputs: Tensor) -> Tensor:
        rows = plain(inputs)
        # With the answer, so that no other has its id.
        given[id(rows)] = (rows, inputs, layer.embeddings)
        return rows

    return call


def _mean(layer: Layer, given: dict[int, tuple[Tensor, Tensor, Tensor]]) -> Callable[..., Tensor]:
    plain = layer.call

    def call(inputs: Tensor, mask: Tensor = None) -> Tensor:
        _, words, table = given.get(id(inputs), (None, None, None))
        # Not what is sparse or ragged.
        if not isinstance(words, tf.Tensor) or words.shape.rank != 2:
            return plain(inputs, mask=mask)
        if words.dtype not in (tf.int32, tf.int64):
            words = tf.cast(words, tf.int32)
        return _mean_of(
            table, words, tf.ones_like(words, tf.bool) if mask is None else tf.cast(mask, tf.bool)
        )

    return call


def _mean_of(table: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    places = tf.where(mask)
    texts = tf.cast(places[:, 0], tf.int32)
    words = tf.gather_nd(words, places)
    # As Keras does: negative numbers count from the end.
    words = tf.where(words < 0, words + table.shape[0], words)
    many = tf.shape(mask)[0]
    lengths = tf.reduce_sum(tf.cast(mask, tf.float32), 1, keepdims=True)

    def mean(rows: Tensor) -> Tensor:
        def gradient(upstream: Tensor) -> Tensor:
            return SharedRows(upstream / lengths, texts, words, tf.constant(tuple(table.shape), words.dtype))

        return tf.sparse.segment_sum(rows, words, texts, num_segments=many) / lengths, gradient

    return tf.custom_gradient(mean)(tf.convert_to_tensor(table))
