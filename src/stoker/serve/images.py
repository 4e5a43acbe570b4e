"""Image files among the rows: they become pixels as the images of training did."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stoker.errors import ArgumentError
from stoker.serve.image_sizes import pixels_in
from stoker.serve.signature import Field

# What the images of one request over the network may hold, in the files and as the model takes them. They are decoded
# where requests are parsed, for about a second at most.
MOST_PIXELS = 100_000_000
_CHANNELS = (1, 3, 4)
# No JSON and no tensor becomes a path: a client cannot have the server's files read.
_FILE = (bytes, bytearray, os.PathLike)


class ImageFault(ArgumentError):
    """An image file that cannot be taken."""


def takes_files(field: Field) -> bool:
    """Whether it is a field of images, of a size that files can be brought to."""
    return (
        field.dtype == "uint8"
        and len(field.shape) == 3
        and None not in field.shape
        and field.shape[2] in _CHANNELS
    )


def expected(field: Field) -> str:
    """What to send for a field of images."""
    return f"send the bytes of an image file, or pixels of shape {list(field.shape)}, 0 to 255"


def with_pixels(field: Field, value: Any, most: int | None) -> Any:
    """The value, with pixels where it has image files; any other value as it is.

    Args:
        field: one that `takes_files`.
        value: of one row, or of many.
        most: how many pixels the files may hold, and as many again as the model takes them; None for any.

    Raises:
        ImageFault: a file is no image, or they hold more.
    """
    value = _unwrapped(value)
    if isinstance(value, _FILE):
        return _decoder(field, most)(value)
    if not isinstance(value, list | tuple) or not any(isinstance(one, _FILE) for one in value):
        return value
    decode = _decoder(field, most)
    height, width, _ = (size or 0 for size in field.shape)
    if most is not None and len(value) * height * width > most:
        raise ImageFault(_too_many(most))  # before there is room for them
    if not all(isinstance(one, _FILE) for one in value):
        return [decode(one) if isinstance(one, _FILE) else one for one in value]
    pixels: Any = np.empty((len(value), *field.shape), np.uint8)
    for number, one in enumerate(value):
        try:
            pixels[number] = decode(one)
        except ImageFault as fault:
            raise ImageFault(f"row {number + 1}: {fault}") from None
    return pixels


def _unwrapped(value: Any) -> Any:
    """Out of tensors and arrays of bytes: one file, or a list of them."""
    if callable(getattr(value, "numpy", None)) and value.dtype.name == "string":  # an eager tensor
        value = value.numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OS" and value.ndim <= 1:
        return value.tolist()
    return value


def _decoder(field: Field, most: int | None) -> Callable[[Any], Any]:
    """From a file to its pixels, counting them."""
    import tensorflow as tf

    from stoker.data.image_bytes import decode, fit

    height, width, channels = (size or 0 for size in field.shape)
    left = most

    def pixels_of(file: Any) -> Any:
        nonlocal left
        raw = bytes(file) if isinstance(file, bytes | bytearray) else _read(file)
        if left is not None:
            left -= max(pixels_in(raw), height * width)
            if left < 0:
                raise ImageFault(_too_many(most))
        try:
            # As the readers do: another device may round otherwise.
            with tf.device("/CPU:0"):
                return fit(decode(raw, channels), (height, width)).numpy()
        except tf.errors.OpError:
            raise ImageFault(f"{_shown(raw)} is not a valid image: {expected(field)}") from None

    return pixels_of


def _too_many(most: int | None) -> str:
    return f"the images hold more than {most:,} pixels: send smaller ones, or fewer at once"


def _read(file: Any) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ImageFault(f"{file} cannot be read: {error.strerror}") from None


def _shown(raw: bytes) -> str:
    return repr(raw if len(raw) <= 16 else raw[:16]) + ("..." if len(raw) > 16 else "")
