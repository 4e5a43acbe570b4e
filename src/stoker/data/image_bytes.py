"""Decode the bytes of an image file to pixels, for training and for serving.

Both use the same code, so that a served model sees the same pixels as in training.
"""

from __future__ import annotations

import tensorflow as tf

from stoker.tf_internals.types import Tensor, TensorLike


def decode_plain(raw: TensorLike, channels: int) -> Tensor:
    """Decode one image to bytes, in its own size. This works in a graph, too."""
    return tf.io.decode_image(raw, channels, expand_animations=False)


def resize(pixels: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize the image to another height and width. This works in a graph, too."""
    return tf.cast(tf.round(tf.image.resize(pixels, size)), tf.uint8)


def decode(raw: TensorLike, channels: int) -> Tensor:
    """Decode one image, including the few kinds that TensorFlow decodes only to colours (CMYK).

    Raises:
        tf.errors.OpError: the data are damaged, or not an image.
    """
    try:
        return decode_plain(raw, channels)
    except tf.errors.InvalidArgumentError:
        if channels != 1:
            raise
        return tf.image.rgb_to_grayscale(decode_plain(raw, 3))


def fit(pixels: Tensor, size: tuple[int, int]) -> Tensor:
    """Return the image in this height and width; resize it only if it has another size."""
    return pixels if tuple(pixels.shape[:2]) == tuple(size) else resize(pixels, size)
