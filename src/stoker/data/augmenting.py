"""Random changes to images, by name. Each is a function of the seed, the epoch and the place of each image in it.

They do what `tf.image` does, but to a whole batch at once, with a separate random number for each image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

from stoker.data.order import BatchChange, Draw
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Nest, Tensor

_ImageChange: TypeAlias = Callable[[Tensor, Draw], Tensor]
# The fraction of an image's height and width that "crop" keeps.
_KEPT = 0.875


def _scale_draws(draws: Tensor, low: float, high: float) -> Tensor:
    """Return the draws scaled to `low` ... `high`, in a shape that broadcasts with the images."""
    return (low + (high - low) * draws)[:, None, None, None]


def _flip_along(axis: int) -> _ImageChange:
    def flip(images: Tensor, draw: Draw) -> Tensor:
        return tf.where(_scale_draws(draw("flip"), 0, 1) < 0.5, tf.reverse(images, [axis]), images)

    return flip


def _on_floats(change: _ImageChange) -> _ImageChange:
    """Adapt a change that takes values from 0 to 1 to images of bytes."""

    def change_bytes(images: Tensor, draw: Draw) -> Tensor:
        floats = tf.image.convert_image_dtype(images, tf.float32)
        return tf.image.convert_image_dtype(change(floats, draw), tf.uint8, saturate=True)

    return change_bytes


def _contrast(images: Tensor, draw: Draw) -> Tensor:
    mean = tf.reduce_mean(images, [1, 2], keepdims=True)
    return (images - mean) * _scale_draws(draw("contrast"), 0.8, 1.2) + mean


def _saturation(images: Tensor, draw: Draw) -> Tensor:
    hue, saturation, value = tf.split(tf.image.rgb_to_hsv(images), 3, -1)
    saturation = tf.clip_by_value(saturation * _scale_draws(draw("saturation"), 0.8, 1.2), 0.0, 1.0)
    return tf.image.hsv_to_rgb(tf.concat([hue, saturation, value], -1))


def _hue(images: Tensor, draw: Draw) -> Tensor:
    hue, saturation, value = tf.split(tf.image.rgb_to_hsv(images), 3, -1)
    hue = tf.math.floormod(hue + _scale_draws(draw("hue"), -0.05, 0.05), 1.0)
    return tf.image.hsv_to_rgb(tf.concat([hue, saturation, value], -1))


def _crop(images: Tensor, draw: Draw) -> Tensor:
    """Return a random part of each image, enlarged to the image's size."""
    top, left = ((1 - _KEPT) * draw(side) for side in ("top", "left"))
    boxes = tf.stack([top, left, top + _KEPT, left + _KEPT], 1)
    cut = tf.image.crop_and_resize(images, boxes, tf.range(tf.shape(images)[0]), images.shape[1:3])
    return tf.ensure_shape(tf.cast(tf.round(cut), tf.uint8), images.shape)


CHANGES: dict[str, _ImageChange] = {
    "flip": _flip_along(2),
    "flip_vertical": _flip_along(1),
    "brightness": _on_floats(lambda images, draw: images + _scale_draws(draw("brightness"), -0.2, 0.2)),
    "contrast": _on_floats(_contrast),
    "saturation": _on_floats(_saturation),
    "hue": _on_floats(_hue),
    "crop": _crop,
}
_OF_COLOURS = ("saturation", "hue")


def check(names: Sequence[str], color_mode: str) -> None:
    """Check the names of changes.

    Raises:
        ArgumentError: a name is unknown, or names a change of colours for grey images.
    """
    if isinstance(names, str):
        raise ArgumentError(f"augment={names!r} must be a list, such as [{names!r}]")
    for name in names:
        if name not in CHANGES:
            raise ArgumentError(f"augment: {name!r} is not one of {', '.join(CHANGES)}")
        if name in _OF_COLOURS and color_mode == "grayscale":
            raise ArgumentError(
                f"augment: {name!r} changes colours, which grayscale images do not have: leave it out"
            )


def change(names: Sequence[str], labelled: bool) -> BatchChange | None:
    """Return the function that changes a batch of images; None if there are no changes."""
    if not names:
        return None

    def draw_at(place: int, draw: Draw) -> Draw:
        # A change that is listed twice draws twice.
        return lambda what: draw(f"{place} {what}")

    def change_batch(element: Nest, draw: Draw) -> Nest:
        images = element[0] if labelled else element
        for place, name in enumerate(names):
            images = CHANGES[name](images, draw_at(place, draw))
        return (images, *element[1:]) if labelled else images

    return change_batch
