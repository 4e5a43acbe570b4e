"""Images in a folder for each class: decoded once into a cache of bytes, gathered from it in every epoch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.data import augmenting, cache
from stoker.data.columns import DataWarning
from stoker.data.splits import Passes, finished, orders
from stoker.data.store import Store, Writer
from stoker.data.text_files import class_files
from stoker.errors import ArgumentError

SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp")
CHANNELS = {"rgb": 3, "grayscale": 1}
_AT_ONCE = 32


def images(
    directory: str | os.PathLike[str],
    image_size: tuple[int, int] | None = None,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    validation_split: float | tuple[float, ...] | None = None,
    *,
    color_mode: str = "rgb",
    label_mode: str | None = "int",
    augment: Sequence[str] = (),
    on_error: str = "raise",
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: str | os.PathLike[str] | bool | None = None,
) -> Any:
    """Images in batches of `(uint8 [batch, height, width, channels], class index)`.

    Args:
        directory: with a folder for each class.
        image_size: height and width. Images of that size are left as they are, others are resized (bilinear, as Keras
            does, rounded to bytes). None: all images must have one size, and keep it.
        color_mode: "rgb" or "grayscale".
        label_mode: "int", "categorical", "binary", or None for images alone.
        augment: changes drawn anew for each training batch: "flip", "flip_vertical", "brightness", "contrast",
            "saturation", "hue", "crop". Held-out images are never changed.
        on_error: "raise" names an image that cannot be decoded; "skip" leaves it out, and `ds.skipped` counts.
        cache: the directory of the decoded images; None for the user's cache directory, False keeps them in memory.

    The other arguments are those of `csv`. Cast and scale inside the model: bytes are a quarter of the traffic.

    Returns:
        A `tf.data.Dataset` with `rows` and `class_names`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file or an argument that makes no sense.
    """
    _check(image_size, color_mode, label_mode, on_error)
    augmenting.check(augment, image_size)
    found = class_files(Path(directory).expanduser(), SUFFIXES)
    names = sorted({name for _, name in found})
    if label_mode == "binary" and len(names) != 2:
        raise ArgumentError(f"label_mode='binary': {directory} has {len(names)} classes, not 2")
    store = _decoded(found, names, image_size, CHANNELS[color_mode], on_error, cache)
    options = Passes(
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        validation_split=validation_split,
        shard=shard,
        drop_remainder=drop_remainder,
    )
    parts = orders(store.rows, options)
    datasets = []
    for order in parts:
        dataset = order.dataset(_epoch(store, label_mode, len(names)))
        if augment and order.part != "held out":
            dataset = augmenting.augmented(dataset, augment, seed, label_mode is not None)
        dataset.skipped = int(store.meta["skipped"])
        datasets.append(dataset)
    return finished(datasets, parts, SimpleNamespace(labels=names))


def check_size(image_size: Any) -> None:
    """Refuse what is no size of an image.

    Raises:
        ArgumentError: it is none.
    """
    if image_size is not None:
        two = isinstance(image_size, Sequence) and len(image_size) == 2
        if not two or not all(isinstance(one, int) and one > 0 for one in image_size):
            raise ArgumentError(f"image_size={image_size!r} must be (height, width), such as (224, 224)")


def _check(image_size: Any, color_mode: str, label_mode: str | None, on_error: str) -> None:
    check_size(image_size)
    if color_mode not in CHANNELS:
        raise ArgumentError(f"color_mode={color_mode!r} is none of {', '.join(CHANNELS)}")
    if label_mode not in (None, "int", "categorical", "binary"):
        raise ArgumentError(f"label_mode={label_mode!r} is none of int, categorical, binary, None")
    if on_error not in ("raise", "skip"):
        raise ArgumentError(f"on_error={on_error!r} must be 'raise' or 'skip'")


def _epoch(store: Store, label_mode: str | None, classes: int) -> Callable[[], Callable[[Any], Any]]:
    def epoch() -> Callable[[Any], Any]:
        pixels, labels = store.tensor("images"), store.tensor("classes")

        def batch(rows: Any) -> Any:
            chosen = tf.gather(pixels, rows)
            if label_mode is None:
                return chosen
            index = tf.gather(labels, rows)
            if label_mode == "categorical":
                return chosen, tf.one_hot(index, classes)
            return chosen, tf.cast(index, tf.float32) if label_mode == "binary" else index

        return batch

    return epoch


def _decoded(
    found: list[tuple[Path, str]],
    names: list[str],
    size: tuple[int, int] | None,
    channels: int,
    on_error: str,
    where: Any,
) -> Store:
    state = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path, _ in found]
    source = ["images", str(found[0][0].parent.parent.resolve()), size, channels, on_error]
    return cache.cached(
        lambda writer: _write(found, names, size, channels, on_error, writer), source, state, where
    )


def _write(
    found: list[tuple[Path, str]],
    names: list[str],
    size: tuple[int, int] | None,
    channels: int,
    on_error: str,
    fresh: Callable[[], Writer],
) -> Store:
    writer = fresh()
    skipped = rows = 0
    try:
        for kept, pixels in _batches([str(path) for path, _ in found], size, channels, on_error):
            if pixels is None:
                skipped += 1
                continue
            writer.append("images", pixels)
            writer.append("classes", np.array([names.index(found[one][1]) for one in kept], np.int32))
            rows += len(kept)
        if rows == 0:
            raise ArgumentError("none of the images can be decoded")
        return writer.finish({"rows": rows, "skipped": skipped})
    finally:
        writer.close()


def _batches(
    paths: list[str], size: tuple[int, int] | None, channels: int, on_error: str
) -> Iterator[tuple[range, Any]]:
    """Images as bytes, many at a time; an image that cannot be decoded comes alone, as None."""
    first = 0
    if size is None:
        size = tuple(int(one) for one in _one(paths[0], None, channels).shape[:2])  # type: ignore[assignment]
        resize = False
    else:
        resize = True
    while first < len(paths):
        dataset = tf.data.Dataset.from_tensor_slices(paths[first:]).map(
            lambda path: _read(path, size, channels, resize),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        try:
            for pixels in dataset.batch(_AT_ONCE).prefetch(2):
                yield range(first, first + len(pixels)), pixels.numpy()
                first += len(pixels)
        except (tf.errors.InvalidArgumentError, tf.errors.UnknownError):
            # One of the next ones; which, is found by decoding them one by one.
            while first < len(paths):
                reason = _fault(paths[first], size, channels, resize)
                if reason is None:
                    yield (
                        range(first, first + 1),
                        _one(paths[first], size if resize else None, channels)[None],
                    )
                    first += 1
                    continue
                if on_error == "raise":
                    raise ArgumentError(f"{paths[first]} {reason}") from None
                warnings.warn(f"left out {paths[first]}, which {reason}", DataWarning, stacklevel=2)
                yield range(first, first + 1), None
                first += 1
                break


def _read(path: Any, size: Any, channels: int, resize: bool) -> Any:
    """In a graph: one image as bytes."""
    pixels = tf.io.decode_image(tf.io.read_file(path), channels, expand_animations=False)
    if not resize:
        return tf.ensure_shape(pixels, [*size, channels])
    fits = tf.reduce_all(tf.equal(tf.shape(pixels)[:2], size))
    pixels = tf.cond(fits, lambda: pixels, lambda: _resized(pixels, size))
    return tf.ensure_shape(pixels, [*size, channels])


def _resized(pixels: Any, size: Any) -> Any:
    return tf.cast(tf.round(tf.image.resize(pixels, size)), tf.uint8)


def _decoded_alone(path: str, channels: int) -> Any:
    """One image, also the few that TensorFlow decodes to colours only (CMYK).

    Raises:
        tf.errors.OpError: it is damaged, or no image.
    """
    raw = tf.io.read_file(path)
    try:
        return tf.io.decode_image(raw, channels, expand_animations=False)
    except tf.errors.InvalidArgumentError:
        if channels != 1:
            raise
        return tf.image.rgb_to_grayscale(tf.io.decode_image(raw, 3, expand_animations=False))


def _one(path: str, size: Any, channels: int) -> Any:
    try:
        pixels = _decoded_alone(path, channels)
    except tf.errors.OpError:
        raise ArgumentError(f"{path} cannot be decoded: it is damaged or no image") from None
    if size is not None and tuple(pixels.shape[:2]) != tuple(size):
        pixels = _resized(pixels, size)
    return pixels.numpy()


def _fault(path: str, size: Any, channels: int, resize: bool) -> str | None:
    try:
        shape = tuple(_decoded_alone(path, channels).shape[:2])
    except tf.errors.OpError:
        return "cannot be decoded: it is damaged or no image"
    if not resize and shape != tuple(size):
        return f"is {shape[0]} x {shape[1]}, others are {size[0]} x {size[1]}: give image_size="
    return None
