"""Decode image files once, into a store: many at a time, or one by one if one of them fails."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from stoker.data import cache
from stoker.data.array_types import Array
from stoker.data.class_folders import ClassFile, read_folder_state
from stoker.data.columns import DataWarning
from stoker.data.image_bytes import decode, decode_plain, fit, resize
from stoker.data.order import skip_autograph
from stoker.data.store import Store, Writer
from stoker.errors import ArgumentError
from stoker.storage import origin_of
from stoker.tf_internals.types import Dataset, Tensor

_AT_ONCE = 32


@dataclass(frozen=True)
class Decoding:
    """The way images are made into arrays of one shape.

    Attributes:
        size: height and width; None if all images must have the size of the first.
        channels: 3 or 1.
        skip: leave out images that cannot be decoded, with a warning.
    """

    size: tuple[int, int] | None
    channels: int
    skip: bool


def load_images(root: Path, files: list[ClassFile], decoding: Decoding, where: cache.CachePlace) -> Store:
    """Return the images and the numbers of their classes: from the cache, or decoded now.

    Raises:
        ArgumentError: an image cannot be decoded, or has another size than the others.
    """
    source = ["images", origin_of(root), decoding.size, decoding.channels, decoding.skip]
    state = [read_folder_state(root, files)]
    return cache.load_or_make(lambda writer: _write(files, decoding, writer), source, state, where)


def _write(files: list[ClassFile], decoding: Decoding, fresh: Callable[[], Writer]) -> Store:
    writer = fresh()
    numbers = {name: number for number, name in enumerate(sorted({file.class_name for file in files}))}
    classes = np.array([numbers[file.class_name] for file in files], np.int32)
    skipped = rows = 0
    try:
        for kept, pixels in _Decoder([file.path for file in files], decoding).batches():
            if pixels is None:
                skipped += 1
                continue
            writer.append("images", pixels)
            writer.append("classes", classes[kept.start : kept.stop])
            rows += len(kept)
        if rows == 0:
            raise ArgumentError("none of the images can be decoded: convert them to PNG or JPEG")
        return writer.finish({"rows": rows, "skipped": skipped})
    finally:
        writer.close()


class _Decoder:
    def __init__(self, paths: list[str], decoding: Decoding) -> None:
        self._paths, self._channels, self._skip = paths, decoding.channels, decoding.skip
        self._resize = decoding.size is not None
        self._size = decoding.size or self._size_of_first()

    def _size_of_first(self) -> tuple[int, int]:
        for number, path in enumerate(self._paths):
            try:
                height, width = decode(tf.io.read_file(os.fsencode(path)), self._channels).shape[:2]
                return height, width
            except tf.errors.OpError as error:
                if not self._skip or number == len(self._paths) - 1:
                    raise ArgumentError(f"{path} {fault_of(error)}") from None
        raise AssertionError("there is at least one image")

    def batches(self) -> Iterator[tuple[range, Array | None]]:
        """Yield images as bytes, many at a time. An image that cannot be decoded comes alone, as None."""
        first = 0
        while first < len(self._paths):
            try:
                for pixels in self._read_from(first):
                    # This is TensorFlow's own memory, which `numpy()` would copy.
                    yield range(first, first + len(pixels)), np.asarray(memoryview(pixels))
                    first += len(pixels)
            except (tf.errors.InvalidArgumentError, tf.errors.UnknownError, *_OUT_OF_REACH):
                # Find the image that failed by decoding the next ones one by one.
                for kept, one in self._read_singly(first):
                    yield kept, one
                    first = kept.stop

    def _read_from(self, first: int) -> Dataset:
        # Paths are passed as bytes, as file names need not be UTF-8.
        paths = tf.data.Dataset.from_tensor_slices([os.fsencode(path) for path in self._paths[first:]])
        images = paths.map(
            skip_autograph(self._read), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        return images.batch(_AT_ONCE).prefetch(2)

    def _read_singly(self, first: int) -> Iterator[tuple[range, Array | None]]:
        """Yield images one by one, up to and including the one that fails."""
        for number in range(first, len(self._paths)):
            path, here = self._paths[number], range(number, number + 1)
            try:
                pixels = decode(tf.io.read_file(os.fsencode(path)), self._channels)
                fault = self._explain_misfit(pixels)
            except tf.errors.OpError as error:
                fault = fault_of(error)
            if fault is None:
                yield here, fit(pixels, self._size).numpy()[None]
                continue
            if not self._skip:
                raise ArgumentError(f"{path} {fault}")
            warnings.warn(f"left out {path}, which {fault}", DataWarning, stacklevel=2)
            yield here, None
            return

    def _explain_misfit(self, pixels: Tensor) -> str | None:
        shape = tuple(pixels.shape[:2])
        if self._resize or shape == tuple(self._size):
            return None
        (height, width), (wanted_height, wanted_width) = shape, self._size
        return f"is {height} x {width}, others are {wanted_height} x {wanted_width}: give image_size="

    def _read(self, path: Tensor) -> Tensor:
        """Read one image as bytes, in a graph."""
        pixels = decode_plain(tf.io.read_file(path), self._channels)
        if self._resize:
            fits = tf.reduce_all(tf.equal(tf.shape(pixels)[:2], self._size))
            pixels = tf.cond(fits, lambda: pixels, lambda: resize(pixels, self._size))
        return tf.ensure_shape(pixels, [*self._size, self._channels])


_OUT_OF_REACH = (tf.errors.NotFoundError, tf.errors.PermissionDeniedError)


def fault_of(error: tf.errors.OpError) -> str:
    """Say what is wrong with an image that TensorFlow could not read or decode, and what to do."""
    if isinstance(error, _OUT_OF_REACH):
        return "cannot be read: make it readable, or remove it"
    return (
        "cannot be decoded: it is damaged, not an image, or of a kind TensorFlow cannot read; "
        "convert it to PNG or JPEG, or remove it"
    )
