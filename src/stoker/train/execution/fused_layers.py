"""Layers of a Keras model for which TensorFlow has one kernel where Keras uses many ops.

Batch normalisation of images: Keras 3 computes moments, differences and products. Each of them passes over all
activations, and so does each of their gradients. XLA fuses these ops; without XLA they take a processor as long as the
convolutions do. TensorFlow's kernel makes two passes over a batch.

The mean of a text's embeddings: Keras computes `Embedding` and `GlobalAveragePooling1D` as a gather, a mask and a sum
over an array with a row for each word of each text, and their gradients over two more arrays. One kernel adds the rows
up where they are, and all words of a text have the same gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import calls_of, layers_of
from stoker.tf_internals.types import Layer, Model, Tensor, Variable


def _is_plain(layer: Layer) -> bool:
    """Return whether a layer computes in float32 and has its class's own `call`."""
    return "call" not in vars(layer) and layer.compute_dtype == layer.variable_dtype == "float32"


@contextmanager
def _replace_calls(calls: Iterable[tuple[Layer, Callable[..., Tensor]]]) -> Iterator[None]:
    """Have each layer call the given function in place of its `call` within the block."""
    calls = list(calls)
    for layer, call in calls:
        layer.__dict__["call"] = call
    try:
        yield
    finally:
        for layer, _ in calls:
            del layer.__dict__["call"]


def normalizes_images(model: Model) -> bool:
    """Return whether the model has a batch normalisation that the kernel can compute."""
    return any(_fits(layer) and layer.built and _takes_images(layer) for layer in layers_of(model))


def may_normalize_images(model: Model) -> bool:
    """Return whether the model has an unbuilt layer that may turn out to be such a batch normalisation."""
    return any(_fits(layer) and not layer.built for layer in layers_of(model))


def fuse_normalization(model: Model, used: Callable[[], None] = lambda: None) -> AbstractContextManager[None]:
    """Fuse the model's batch normalisation in traces within the block, if the kernel computes the same.

    Args:
        model: a Keras model.
        used: called for each layer that is traced with the kernel.
    """
    return _replace_calls((layer, _normalize(layer, used)) for layer in layers_of(model) if _fits(layer))


def _fits(layer: Layer) -> bool:
    return (
        type(layer) is keras.layers.BatchNormalization
        and _is_plain(layer)
        and not layer.synchronized
        and not getattr(layer, "renorm", False)
    )


def _takes_images(layer: Layer) -> bool:
    """Return whether the input of a built layer has four dimensions, with the channels last."""
    return layer.input_spec.ndim == 4 and layer.axis in (-1, 3)


def _normalize(layer: Layer, used: Callable[[], None]) -> Callable[..., Tensor]:
    plain = layer.call

    def call(inputs: Tensor, training: bool | None = None, mask: Tensor = None) -> Tensor:
        images = _takes_images(layer) and inputs.dtype == tf.float32
        if training not in (True, False, None) or mask is not None or not images:
            return plain(inputs, training=training, mask=mask)
        used()
        channels = inputs.shape[-1]
        learns = bool(training) and layer.trainable
        # Not `tf.compat.v1.nn.fused_batch_norm`, which takes no epsilon below 1.001e-5.
        done = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=tf.convert_to_tensor(layer.gamma) if layer.scale else tf.ones(channels),
            offset=tf.convert_to_tensor(layer.beta) if layer.center else tf.zeros(channels),
            mean=[] if learns else tf.convert_to_tensor(layer.moving_mean),
            variance=[] if learns else tf.convert_to_tensor(layer.moving_variance),
            epsilon=layer.epsilon,
            is_training=learns,
        )
        if learns:
            # The kernel estimates the variance of all images from this batch; Keras averages the variance of the batch
            # itself.
            values = tf.cast(tf.size(inputs) // channels, tf.float32)
            _average(layer.moving_mean, done.batch_mean, layer.momentum)
            _average(layer.moving_variance, done.batch_variance * ((values - 1) / values), layer.momentum)
        return done.y

    return call


def _average(moving: Variable, value: Tensor, momentum: float) -> None:
    moving.assign(moving * momentum + value * (1 - momentum))


class SharedRows(tf.IndexedSlices):
    """The gradient of a table, in which all words of a text share one row.

    Code that does not know this class takes it for an `IndexedSlices`. Without such code, its values are never
    computed.
    """

    def __init__(self, of_texts: Tensor, texts: Tensor, words: Tensor, shape: Tensor) -> None:
        self.of_texts, self.texts = of_texts, texts
        super().__init__(tf.gather(of_texts, texts), words, shape)

    def summed(self, of_texts: Tensor, place: Tensor, count: Tensor) -> Tensor:
        """Add up each text's row of `of_texts` over its words, at their `place` in a result of `count` rows."""
        return tf.raw_ops.SparseSegmentSumGrad(
            grad=of_texts, indices=place, segment_ids=self.texts, output_dim0=count
        )


def averages_embeddings(model: Model) -> bool:
    """Return whether the model has a mean of embeddings that can be fused."""
    return any(
        _is_embedding(parent.operation) and _takes_plain_words(parent)
        for layer in layers_of(model)
        if _is_mean(layer)
        for node in calls_of(layer)
        for parent in node.parent_nodes
    )


def fuse_means(model: Model) -> AbstractContextManager[None]:
    """Fuse the model's means of embeddings in traces within the block."""
    given: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
    layers = layers_of(model)
    embeddings = [(layer, _note_words(layer, given)) for layer in layers if _is_embedding(layer)]
    return _replace_calls(
        [*embeddings, *((layer, _mean(layer, given)) for layer in layers if _is_mean(layer))]
    )


def _is_embedding(layer: Layer) -> bool:
    return (
        type(layer) is keras.layers.Embedding
        and _is_plain(layer)
        and not layer.lora_enabled
        and layer.quantization_mode is None
    )


def _is_mean(layer: Layer) -> bool:
    return (
        type(layer) is keras.layers.GlobalAveragePooling1D
        and _is_plain(layer)
        and layer.data_format == "channels_last"
        and not layer.keepdims
    )


def _takes_plain_words(node: Any) -> bool:
    return not any(
        getattr(words, "sparse", False) or getattr(words, "ragged", False) for words in node.input_tensors
    )


def _note_words(layer: Layer, given: dict[int, tuple[Tensor, Tensor, Tensor]]) -> Callable[[Tensor], Tensor]:
    """Return a `call` that runs the layer as usual, and notes the words for the layer that takes the mean.

    The gather is then pruned.
    """
    plain = layer.call

    def call(inputs: Tensor) -> Tensor:
        rows = plain(inputs)
        # The rows are kept too, so that no other tensor gets their id.
        given[id(rows)] = (rows, inputs, layer.embeddings)
        return rows

    return call


def _mean(layer: Layer, given: dict[int, tuple[Tensor, Tensor, Tensor]]) -> Callable[..., Tensor]:
    plain = layer.call

    def call(inputs: Tensor, mask: Tensor = None) -> Tensor:
        _, words, table = given.get(id(inputs), (None, None, None))
        # Exclude sparse and ragged words.
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
    # As in Keras, negative numbers count from the end.
    words = tf.where(words < 0, words + table.shape[0], words)
    many = tf.shape(mask)[0]
    lengths = tf.reduce_sum(tf.cast(mask, tf.float32), 1, keepdims=True)

    def mean(rows: Tensor) -> Tensor:
        def gradient(upstream: Tensor) -> Tensor:
            return SharedRows(upstream / lengths, texts, words, tf.constant(tuple(table.shape), words.dtype))

        return tf.sparse.segment_sum(rows, words, texts, num_segments=many) / lengths, gradient

    return tf.custom_gradient(mean)(tf.convert_to_tensor(table))
