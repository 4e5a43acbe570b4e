"""Changes of images by name, a batch at a time: by the seed, the epoch and the place of each image in it.

What `tf.image` does to one image with one random number is done here to all images of a batch, each with its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from stoker.data.order import Change
from stoker.errors import ArgumentError

# Gives a random number from 0 to 1 for each image; another one for each word.
_Draw = Callable[[str], Any]
# The part of an image's height and width that "crop" keeps.
_KEPT = 0.875


def _between(draws: Any, low: float, high: float) -> Any:
    """From `low` to `high`, in a shape that goes with the images."""
    return (low + (high - low) * draws)[:, None, None, None]


def _flipped(axis: int) -> Callable[[Any, _Draw], Any]:
    def flip(images: Any, draw: _Draw) -> Any:
        return tf.where(_between(draw("flip"), 0, 1) < 0.5, tf.reverse(images, [axis]), images)

    return flip


def _as_floats(change: Callable[[Any, _Draw], Any]) -> Callable[[Any, _Draw], Any]:
    """The change of images from 0 to 1, for images of bytes."""

    def changed(images: Any, draw: _Draw) -> Any:
        floats = tf.image.convert_image_dtype(images, tf.float32)
        return tf.image.convert_image_dtype(change(floats, draw), tf.uint8, saturate=True)

    return changed


def _contrast(images: Any, draw: _Draw) -> Any:
    mean = tf.reduce_mean(images, [1, 2], keepdims=True)
    return (images - mean) * _between(draw("contrast"), 0.8, 1.2) + mean


def _saturation(images: Any, draw: _Draw) -> Any:
    hue, saturation, value = tf.split(tf.image.rgb_to_hsv(images), 3, -1)
    saturation = tf.clip_by_value(saturation * _between(draw("saturation"), 0.8, 1.2), 0.0, 1.0)
    return tf.image.hsv_to_rgb(tf.concat([hue, saturation, value], -1))


def _hue(images: Any, draw: _Draw) -> Any:
    hue, saturation, value = tf.split(tf.image.rgb_to_hsv(images), 3, -1)
    hue = tf.math.floormod(hue + _between(draw("hue"), -0.05, 0.05), 1.0)
    return tf.image.hsv_to_rgb(tf.concat([hue, saturation, value], -1))


def _crop(images: Any, draw: _Draw) -> Any:
    """A part of each image, brought back to its size."""
    top, left = ((1 - _KEPT) * draw(side) for side in ("top", "left"))
    boxes = tf.stack([top, left, top + _KEPT, left + _KEPT], 1)
    cut = tf.image.crop_and_resize(images, boxes, tf.range(tf.shape(images)[0]), images.shape[1:3])
    return tf.ensure_shape(tf.cast(tf.round(cut), tf.uint8), images.shape)


CHANGES: dict[str, Callable[[Any, _Draw], Any]] = {
    "flip": _flipped(2),
    "flip_vertical": _flipped(1),
    "brightness": _as_floats(lambda images, draw: images + _between(draw("brightness"), -0.2, 0.2)),
    "contrast": _as_floats(_contrast),
    "saturation": _as_floats(_saturation),
    "hue": _as_floats(_hue),
    "crop": _crop,
}
_OF_COLOURS = ("saturation", "hue")


def check(names: Sequence[str], color_mode: str) -> None:
    """Only what there is, and what the images have.

    Raises:
        ArgumentError: a name that is none of ours, or a change of colours for grey images.
    """
    if isinstance(names, str):
        raise ArgumentError(f"augment={names!r} must be a list, such as [{names!r}]")
    for name in names:
        if name not in CHANGES:
            raise ArgumentError(f"augment: {name!r} is none of {', '.join(CHANGES)}")
        if name in _OF_COLOURS and color_mode == "grayscale":
            raise ArgumentError(
                f"augment: {name!r} changes colours, which images in grayscale do not have: leave it out"
            )


def change(names: Sequence[str], labelled: bool) -> Change | None:
    """What changes a batch of images; None where nothing is to be changed."""
    if not names:
        return None

    def changed(element: Any, draw: _Draw) -> Any:
        images = element[0] if labelled else element
        for place, name in enumerate(names):
            # The same change twice draws twice.
            images = CHANGES[name](images, lambda what, place=place: draw(f"{place} {what}"))  # type: ignore[misc]
        return (images, *element[1:]) if labelled else images

    return changed
