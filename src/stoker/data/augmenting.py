"""Changes of images by name, drawn from the seed for each image of each pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from stoker.errors import ArgumentError

_Change = Callable[[Any, Any], Any]
_MARGIN = 0.875


def _crop(image: Any, seed: Any) -> Any:
    """A part of the image, brought back to its size."""
    height, width, channels = image.shape
    part = [int(height * _MARGIN), int(width * _MARGIN), channels]
    cut = tf.image.stateless_random_crop(image, part, seed)
    return tf.cast(tf.round(tf.image.resize(cut, (height, width))), tf.uint8)


CHANGES: dict[str, _Change] = {
    "flip": tf.image.stateless_random_flip_left_right,
    "flip_vertical": tf.image.stateless_random_flip_up_down,
    "brightness": lambda image, seed: tf.image.stateless_random_brightness(image, 0.2, seed),
    "contrast": lambda image, seed: tf.image.stateless_random_contrast(image, 0.8, 1.2, seed),
    "saturation": lambda image, seed: tf.image.stateless_random_saturation(image, 0.8, 1.2, seed),
    "hue": lambda image, seed: tf.image.stateless_random_hue(image, 0.05, seed),
    "crop": _crop,
}


def check(names: Sequence[str], image_size: Any) -> None:
    """Only what there is.

    Raises:
        ArgumentError: a name that is none of ours.
    """
    if isinstance(names, str):
        raise ArgumentError(f"augment={names!r} must be a list, such as [{names!r}]")
    for name in names:
        if name not in CHANGES:
            raise ArgumentError(f"augment: {name!r} is none of {', '.join(CHANGES)}")


def augmented(dataset: Any, names: Sequence[str], seed: int, labelled: bool) -> Any:
    """The dataset with each image changed by a seed of its own; the order of the seeds is that of the images."""
    from stoker.data.order import EpochKeys

    def change(element: Any, key: Any) -> Any:
        images = element[0] if labelled else element
        numbers = tf.range(tf.shape(images, tf.int64)[0])

        def one(image: Any, number: Any) -> Any:
            image = tf.ensure_shape(image, images.shape[1:])
            for place, name in enumerate(names):
                image = CHANGES[name](image, tf.stack([key + place, number]))
            return image

        changed = tf.map_fn(lambda both: one(*both), (images, numbers), fn_output_signature=images.dtype)
        changed = tf.ensure_shape(changed, images.shape)
        return (changed, *element[1:]) if labelled else changed

    # Another key for every batch of every pass, from the same generator as the order.
    pairs = tf.data.Dataset.zip((dataset, EpochKeys(seed ^ 0x5EED)))
    changed = pairs.map(change, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return changed.prefetch(tf.data.AUTOTUNE)
