"""Samples of tar shards as a dataset: decoded once into the store, gathered from it in every epoch."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.data import cache as caches
from stoker.data import paths as found
from stoker.data.columns import nearest
from stoker.data.image_reader import check_size
from stoker.data.order import Order
from stoker.data.splits import Passes, finished, orders
from stoker.data.store import Store, Writer
from stoker.data.strings import strings
from stoker.data.tar_files import KEY, Sample, chosen, decoded, kind_of, samples
from stoker.errors import ArgumentError

_AT_ONCE = 64


def tar(
    paths: found.Paths,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: float | tuple[float, ...] | None = None,
    *,
    columns: Sequence[str] | None = None,
    image_size: tuple[int, int] | None = None,
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: str | os.PathLike[str] | bool | None = None,
) -> Any:
    """Samples of tar files in the manner of webdataset, in batches of `({extension: tensor}, label)`.

    Members that share a name up to the first dot are one sample. Images (`jpg`, `png`, ...) become uint8, `cls`, `id`,
    `index` and the like whole numbers, `txt` and `json` text, `npy` arrays; `__key__` is the name.

    Args:
        paths: files, globs or folders of `.tar`, `.tar.gz` or `.tgz`.
        label: the extension to predict, such as "cls"; None gives the columns alone.
        columns: the extensions to read; by default those of the first sample.
        image_size: height and width; images of another size are resized. None: all must have one size.
        cache: the directory of what was decoded; None for the user's cache directory, False keeps it in memory.

    The other arguments are those of `csv`.

    Returns:
        A `tf.data.Dataset` with `rows`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file or an argument that makes no sense.
    """
    check_size(image_size)
    shards = found.files(paths, found.TARS)
    first = next(samples(shards), None)
    if first is None:
        raise ArgumentError(f"{found.spoken(shards)} holds no samples: no member has a name and an extension")
    extensions = chosen(first, columns)
    if label is not None:
        nearest(extensions, label, "label")
    store = _stored(shards, extensions, image_size, cache)
    options = Passes(
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        validation_split=validation_split,
        shard=shard,
        drop_remainder=drop_remainder,
    )
    parts = orders(store.rows, options)

    def made(order: Order) -> Any:
        return order.dataset(_batch_of(store, extensions, label))

    return finished([made(order) for order in parts], parts, None, made)


def _batch_of(store: Store, extensions: list[str], label: str | None) -> Callable[[Any], Any]:
    def batch(rows: Any) -> Any:
        values = {name: _values(store, name, rows) for name in [KEY, *extensions]}
        return values if label is None else (values, values.pop(label))

    return batch


def _values(store: Store, name: str, rows: Any) -> Any:
    if _is_text(name):
        return strings(store, f"ends-{name}", f"text-{name}", rows)
    return tf.gather(store.tensor(f"values-{name}"), rows)


def _is_text(name: str) -> bool:
    return name == KEY or kind_of(name) == "text"


def _stored(shards: list[Path], extensions: list[str], size: tuple[int, int] | None, where: Any) -> Store:
    def write(fresh: Callable[[], Writer]) -> Store:
        writer = fresh()
        try:
            rows = 0
            columns = [_Column(name, writer) for name in [KEY, *extensions]]
            for block in _blocks(samples(shards)):
                for column in columns:
                    column.add(block, size)
                rows += len(block)
            return writer.finish({"rows": rows})
        finally:
            writer.close()

    state = [caches.state_of(path) for path in shards]
    source = ["tar", [str(path.resolve()) for path in shards], extensions, size]
    return caches.cached(write, source, state, where)


def _blocks(rows: Any) -> Any:
    while block := list(itertools.islice(rows, _AT_ONCE)):
        yield block


class _Column:
    """One extension of all samples, appended block by block."""

    def __init__(self, name: str, writer: Writer) -> None:
        self._name, self._writer = name, writer
        self._shape: tuple[int, ...] | None = None
        self._dtype: Any = None
        self._end = 0

    def add(self, block: list[Sample], size: tuple[int, int] | None) -> None:
        if self._name == KEY:
            self._add_texts([sample.key for sample in block])
            return
        values = [decoded(sample, self._name, size) for sample in block]
        if _is_text(self._name):
            self._add_texts(values)
            return
        arrays = [np.asarray(value) for value in values]
        if self._shape is None:
            self._shape, self._dtype = arrays[0].shape, arrays[0].dtype
        for sample, array in zip(block, arrays, strict=True):
            if array.shape != self._shape or array.dtype != self._dtype:
                hint = ": give image_size=" if kind_of(self._name) == "image" else ""
                raise ArgumentError(
                    f"{sample.key}.{self._name} of {sample.shard} is {array.dtype} {array.shape}, others are "
                    f"{self._dtype} {self._shape}{hint}"
                )
        self._writer.append(f"values-{self._name}", np.stack(arrays))

    def _add_texts(self, texts: list[str]) -> None:
        if not self._end:
            # A place that belongs to no text: where all are empty, there is still something to map.
            self._writer.append(f"text-{self._name}", np.zeros(1, np.int32))
            self._writer.append(f"ends-{self._name}", np.ones(1, np.int64))
            self._end = 1
        points = np.frombuffer("".join(texts).encode("utf-32-le"), np.int32)
        ends = self._end + np.cumsum([len(text) for text in texts])
        self._writer.append(f"text-{self._name}", points)
        self._writer.append(f"ends-{self._name}", ends.astype(np.int64))
        self._end = int(ends[-1])
