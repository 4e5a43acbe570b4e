"""The bytes of an image file as pixels: for training, and for whoever asks the trained model.

One place for both, so that a model is asked with the very pixels it would have learned from.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def plain(raw: Any, channels: int) -> Any:
    """One image as bytes, in its own size; in a graph, too."""
    return tf.io.decode_image(raw, channels, expand_animations=False)


def resized(pixels: Any, size: Any) -> Any:
    """Brought to a height and width; in a graph, too."""
    return tf.cast(tf.round(tf.image.resize(pixels, size)), tf.uint8)


def decoded(raw: Any, channels: int) -> Any:
    """One image, also the few that TensorFlow decodes to colours only (CMYK).

    Raises:
        tf.errors.OpError: it is damaged, or no image.
    """
    try:
        return plain(raw, channels)
    except tf.errors.InvalidArgumentError:
        if channels != 1:
            raise
        return tf.image.rgb_to_grayscale(plain(raw, 3))


def fitted(pixels: Any, size: tuple[int, int]) -> Any:
    """In a height and width: what has them is left as it is."""
    return pixels if tuple(pixels.shape[:2]) == tuple(size) else resized(pixels, size)
