"""Decode image files among the rows to pixels, exactly as the images of training were decoded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stoker.errors import ArgumentError
from stoker.serve.image_sizes import pixels_in
from stoker.serve.signature import Array, Field

# The most pixels in the images of one network request, counted both in the files and as the model takes them. Decoding
# them takes about a second.
MOST_PIXELS = 100_000_000
_CHANNELS = (1, 3, 4)
# A client of the server cannot name its files: no JSON value and no tensor becomes a path.
_File = bytes | bytearray | os.PathLike[str]
_FILES = (bytes, bytearray, os.PathLike)


class ImageFault(ArgumentError):
    """An image file that cannot be used."""


def takes_files(field: Field) -> bool:
    """Return whether a field holds images, of a size that files can be resized to."""
    return (
        field.dtype == "uint8"
        and len(field.shape) == 3
        and None not in field.shape
        and field.shape[2] in _CHANNELS
    )


def describe_expected(field: Field) -> str:
    """Say what to send for a field of images."""
    return f"send the bytes of an image file, or pixels of shape {list(field.shape)}, 0 to 255"


def with_pixels(field: Field, value: object, most: int | None) -> object:
    """Replace image files in a value with their pixels; return any other value as it is.

    Args:
        field: one that `takes_files`.
        value: the value of one row, or of many.
        most: how many pixels there may be, in the files and as the model takes them; None for any number.

    Raises:
        ImageFault: a file is not an image, or there are more pixels.
    """
    value = _unwrap(value)
    if isinstance(value, _FILES):
        return _decoder(field, most)(value)
    if not isinstance(value, list | tuple) or not any(isinstance(one, _FILES) for one in value):
        return value
    decode = _decoder(field, most)
    height, width, channels = (size or 0 for size in field.shape)
    if most is not None and len(value) * height * width > most:
        raise ImageFault(_too_many(most))  # refused before memory is allocated for them
    if not all(isinstance(one, _FILES) for one in value):
        return [decode(one) if isinstance(one, _FILES) else one for one in value]
    pixels = np.empty((len(value), height, width, channels), np.uint8)
    for number, one in enumerate(value):
        try:
            pixels[number] = decode(one)
        except ImageFault as fault:
            raise ImageFault(f"row {number + 1}: {fault}") from None
    return pixels


def _unwrap(value: object) -> object:
    """Return the file or the list of files in a tensor or array of bytes."""
    numpy = getattr(value, "numpy", None)  # an eager tensor
    if callable(numpy) and getattr(getattr(value, "dtype", None), "name", "") == "string":
        value = numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OS" and value.ndim <= 1:
        return value.tolist()
    return value


def _decoder(field: Field, most: int | None) -> Callable[[_File], Array]:
    """Return a function that decodes a file to pixels, and counts them."""
    import tensorflow as tf

    from stoker.data.image_bytes import decode, fit

    height, width, channels = (size or 0 for size in field.shape)
    left = most

    def pixels_of(file: _File) -> Array:
        nonlocal left
        raw = bytes(file) if isinstance(file, bytes | bytearray) else _read(file)
        if left is not None:
            left -= max(pixels_in(raw), height * width)
            if left < 0:
                raise ImageFault(_too_many(most))
        try:
            # Decode on the CPU, as the readers do: another device may round differently.
            with tf.device("/CPU:0"):
                pixels: Array = fit(decode(raw, channels), (height, width)).numpy()
                return pixels
        except tf.errors.OpError:
            raise ImageFault(f"{_shorten(raw)} is not a valid image: {describe_expected(field)}") from None

    return pixels_of


def _too_many(most: int | None) -> str:
    return f"the images hold more than {most:,} pixels: send smaller ones, or fewer at once"


def _read(file: os.PathLike[str]) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ImageFault(f"{file} cannot be read: {error.strerror}") from None


def _shorten(raw: bytes) -> str:
    return repr(raw if len(raw) <= 16 else raw[:16]) + ("..." if len(raw) > 16 else "")
