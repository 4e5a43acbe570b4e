"""Batch normalisation of images by TensorFlow's fused kernel: two passes over a batch in place of Keras' ten.

Keras 3 writes it as moments, differences and products, each of which goes over all activations, and so does each of
their gradients. XLA fuses them; where the step is not compiled they take a processor as long as the convolutions do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.types import Layer, Model, Tensor, Variable
from stoker.train.execution.replaced_calls import is_plain, replaced


def applies(model: Model) -> bool:
    """Whether the model has a layer that the kernel computes."""
    return any(_fits(layer) and layer.built and _takes_images(layer) for layer in layers_of(model))


def may_apply(model: Model) -> bool:
    """Whether it has a layer that is not built yet, and so may turn out to be one."""
    return any(_fits(layer) and not layer.built for layer in layers_of(model))


def fused(model: Model, used: Callable[[], None] = lambda: None) -> AbstractContextManager[None]:
    """What is traced inside has the model's batch normalisation fused, where the kernel computes the same.

    Args:
        model: a Keras model.
        used: called for each layer that is traced with the kernel.
    """
    return replaced((layer, _call(layer, used)) for layer in layers_of(model) if _fits(layer))


def _fits(layer: Layer) -> bool:
    return (
        type(layer) is keras.layers.BatchNormalization
        and is_plain(layer)
        and not layer.synchronized
        and not getattr(layer, "renorm", False)
    )


def _takes_images(layer: Layer) -> bool:
    """Whether what a built layer takes has four dimensions, the channels last."""
    return layer.input_spec.ndim == 4 and layer.axis in (-1, 3)


def _call(layer: Layer, used: Callable[[], None]) -> Callable[..., Tensor]:
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
            # The kernel's is the variance of all images, estimated from these; Keras averages the variance of these.
            values = tf.cast(tf.size(inputs) // channels, tf.float32)
            _average(layer.moving_mean, done.batch_mean, layer.momentum)
            _average(layer.moving_variance, done.batch_variance * ((values - 1) / values), layer.momentum)
        return done.y

    return call


def _average(moving: Variable, value: Tensor, momentum: float) -> None:
    moving.assign(moving * momentum + value * (1 - momentum))
