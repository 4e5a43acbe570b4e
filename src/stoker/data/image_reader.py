"""Images in a folder for each class: decoded once into a cache, from which every epoch gathers its batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from stoker.data import augmenting
from stoker.data.cache import CachePlace
from stoker.data.class_folders import class_files
from stoker.data.image_files import Decoding, load_images
from stoker.data.labels import warn_of_single_examples
from stoker.data.order import Order
from stoker.data.paths import IMAGES, local_tree
from stoker.data.splits import Passes, Split, make_datasets, orders
from stoker.data.store import Store
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Dataset, Nest, Tensor

CHANNELS = {"rgb": 3, "grayscale": 1}


def images(
    directory: str | os.PathLike[str],
    image_size: tuple[int, int] | None = None,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    validation_split: Split = None,
    *,
    color_mode: str = "rgb",
    label_mode: str | None = "int",
    augment: Sequence[str] = (),
    on_error: str = "raise",
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: CachePlace = None,
    cache_bytes: int | None = None,
) -> Dataset:
    """Read images in batches of `(uint8 [batch, height, width, channels], class index)`.

    Args:
        directory: it has a folder for each class.
        image_size: height and width. Images of another size are resized (bilinear, as by Keras, rounded to bytes).
            None: all images must have the same size.
        color_mode: "rgb" or "grayscale".
        label_mode: "int", "categorical", "binary", or None for images alone.
        augment: random changes to each training batch: "flip", "flip_vertical", "brightness", "contrast",
            "saturation", "hue", "crop". Held-out images are never changed.
        on_error: "raise" stops at an image that cannot be decoded; "skip" leaves it out with a warning, and
            `ds.skipped` counts them.
        cache: the directory of the decoded images; None for the user's cache directory, False to keep them in memory.

    The other arguments are those of `csv`. Cast and scale inside the model: bytes are a quarter of the traffic.

    Returns:
        A `tf.data.Dataset` with `rows` and `class_names`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file or an argument is invalid.
    """
    _check(image_size, color_mode, label_mode, on_error)
    augmenting.check(augment, color_mode)
    root = local_tree(directory, IMAGES, cache_bytes)
    found = class_files(root, IMAGES)
    names = sorted({file.class_name for file in found})
    if label_mode == "binary" and len(names) != 2:
        raise ArgumentError(f"label_mode='binary' needs 2 classes, but {directory} has {len(names)}")
    store = load_images(root, found, Decoding(image_size, CHANNELS[color_mode], on_error == "skip"), cache)
    options = Passes(batch_size, shuffle, seed, validation_split, shard, drop_remainder)
    parts = orders(store.rows, options)
    counts = np.bincount(store.array("classes"), minlength=len(names))
    warn_of_single_examples(os.fspath(directory), names, counts)

    def make(order: Order) -> Dataset:
        change = augmenting.change(augment, label_mode is not None) if order.part != "held out" else None
        dataset = order.dataset(_batch_of(store, label_mode, len(names)), change)
        dataset.skipped = int(store.meta["skipped"])
        return dataset

    return make_datasets(parts, make, SimpleNamespace(labels=names))


def check_size(image_size: tuple[int, int] | None, name: str = "image_size") -> None:
    """Check the size of images.

    Args:
        image_size: height and width, or None.
        name: the name of the argument, for the message.

    Raises:
        ArgumentError: the size is neither of these.
    """
    if image_size is not None:
        two = isinstance(image_size, Sequence) and len(image_size) == 2
        if not two or not all(isinstance(one, int) and one > 0 for one in image_size):
            raise ArgumentError(f"{name}={image_size!r} must be (height, width), such as (224, 224)")


def _check(
    image_size: tuple[int, int] | None, color_mode: str, label_mode: str | None, on_error: str
) -> None:
    check_size(image_size)
    if color_mode not in CHANNELS:
        raise ArgumentError(f"color_mode={color_mode!r} must be 'rgb' or 'grayscale'")
    if label_mode not in (None, "int", "categorical", "binary"):
        raise ArgumentError(f"label_mode={label_mode!r} must be 'int', 'categorical', 'binary' or None")
    if on_error not in ("raise", "skip"):
        raise ArgumentError(f"on_error={on_error!r} must be 'raise' or 'skip'")


def _batch_of(store: Store, label_mode: str | None, classes: int) -> Callable[[Tensor], Nest]:
    def batch(rows: Tensor) -> Nest:
        chosen = tf.gather(store.tensor("images"), rows)
        if label_mode is None:
            return chosen
        index = tf.gather(store.tensor("classes"), rows)
        if label_mode == "categorical":
            return chosen, tf.one_hot(index, classes)
        return chosen, tf.cast(index, tf.float32) if label_mode == "binary" else index

    return batch
