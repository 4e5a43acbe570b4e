"""Samples of tar shards as a dataset: decoded once into the store, from which every epoch gathers its batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from stoker.data import cache as caches
from stoker.data import paths as found
from stoker.data.cache import CachePlace
from stoker.data.columns import check_known
from stoker.data.image_reader import check_size
from stoker.data.splits import Passes, Split, make_datasets, orders
from stoker.data.store import Store, Writer
from stoker.data.tar_files import KEY, TarSample, choose_extensions, decode, kind_of, samples
from stoker.errors import ArgumentError
from stoker.storage import origin_of
from stoker.tf_internals.types import Dataset, Nest, Tensor

_AT_ONCE = 64


@found.parses_as_files_arrive
def tar(
    paths: found.Paths,
    label: str | None = None,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    validation_split: Split = None,
    *,
    columns: Sequence[str] | None = None,
    image_size: tuple[int, int] | None = None,
    shard: tuple[int, int] = (0, 1),
    drop_remainder: bool = False,
    cache: CachePlace = None,
    cache_bytes: int | None = None,
) -> Dataset:
    """Read samples of tar files as webdataset writes them, in batches of `({extension: tensor}, label)`.

    Members that share a name up to the first dot are one sample. Images (`jpg`, `png`, ...) become uint8; `cls`, `id`,
    `index` and similar ones whole numbers; `txt` and `json` text; `npy` arrays. `__key__` is the name.

    Args:
        paths: files, globs or folders of `.tar`, `.tar.gz` or `.tgz`.
        label: the extension to predict, such as "cls"; None gives the columns alone.
        columns: the extensions to read; by default those of the first sample.
        image_size: height and width; images of another size are resized. None: all must have the same size.
        cache: the directory of the decoded samples; None for the user's cache directory, False to keep them in memory.

    The other arguments are those of `csv`.

    Returns:
        A `tf.data.Dataset` with `rows`; two of them with `validation_split`.

    Raises:
        ArgumentError: a file or an argument is invalid.
    """
    check_size(image_size)
    shards = found.files(paths, found.TARS, cache_bytes)
    first = next(samples(shards), None)
    if first is None:
        raise ArgumentError(
            f"{found.name_files(shards)} holds no samples: no member has a name and an extension"
        )
    extensions = choose_extensions(first, columns)
    if label is not None:
        check_known(extensions, label, "label")
    store = _load(shards, extensions, image_size, cache)
    options = Passes(batch_size, shuffle, seed, validation_split, shard, drop_remainder)
    batch = _batch_of(store, extensions, label)
    return make_datasets(orders(store.rows, options), lambda order: order.dataset(batch))


def _batch_of(store: Store, extensions: list[str], label: str | None) -> Callable[[Tensor], Nest]:
    def batch(rows: Tensor) -> Nest:
        values = {name: _values(store, name, rows) for name in [KEY, *extensions]}
        return values if label is None else (values, values.pop(label))

    return batch


def _values(store: Store, name: str, rows: Tensor) -> Tensor:
    if _is_text(name):
        return store.strings(name, rows)
    return tf.gather(store.tensor(f"values-{name}"), rows)


def _is_text(name: str) -> bool:
    return name == KEY or kind_of(name) == "text"


def _load(
    shards: list[Path], extensions: list[str], size: tuple[int, int] | None, where: CachePlace
) -> Store:
    def write(fresh: Callable[[], Writer]) -> Store:
        writer = fresh()
        try:
            rows = 0
            columns = [_Extension(name, writer) for name in [KEY, *extensions]]
            for block in _blocks(samples(shards)):
                for column in columns:
                    column.add(block, size)
                rows += len(block)
            return writer.finish({"rows": rows})
        finally:
            writer.close()

    state = [caches.read_file_state(path) for path in shards]
    source = ["tar", [origin_of(path) for path in shards], extensions, size]
    return caches.load_or_make(write, source, state, where)


def _blocks(rows: Iterator[TarSample]) -> Iterator[list[TarSample]]:
    while block := list(itertools.islice(rows, _AT_ONCE)):
        yield block


class _Extension:
    """One extension of all samples, appended block by block."""

    def __init__(self, name: str, writer: Writer) -> None:
        self._name, self._writer = name, writer
        # The form of the first value; all others must have the same.
        self._form: tuple[np.dtype[np.generic], tuple[int, ...]] | None = None
        self._end = 0

    def add(self, block: list[TarSample], size: tuple[int, int] | None) -> None:
        if self._name == KEY:
            self._add_texts([sample.key for sample in block])
            return
        values = [decode(sample, self._name, size) for sample in block]
        if _is_text(self._name):
            self._add_texts([str(value) for value in values])
            return
        arrays = [np.asarray(value) for value in values]
        self._form = self._form or (arrays[0].dtype, arrays[0].shape)
        for sample, array in zip(block, arrays, strict=True):
            if (array.dtype, array.shape) != self._form:
                hint = "give image_size=" if kind_of(self._name) == "image" else "make them the same"
                raise ArgumentError(
                    f"{sample.key}.{self._name} of {sample.shard} is {array.dtype} {array.shape}, others are "
                    f"{self._form[0]} {self._form[1]}: {hint}"
                )
        self._writer.append(f"values-{self._name}", np.stack(arrays))

    def _add_texts(self, texts: list[str]) -> None:
        if not self._end:
            # Add a character that belongs to no text, so that there is something to map even if all texts are empty.
            self._writer.append(f"text-{self._name}", np.zeros(1, np.int32))
            self._writer.append(f"ends-{self._name}", np.ones(1, np.int64))
            self._end = 1
        points = np.frombuffer("".join(texts).encode("utf-32-le"), np.int32)
        ends = self._end + np.cumsum([len(text) for text in texts])
        self._writer.append(f"text-{self._name}", points)
        self._writer.append(f"ends-{self._name}", ends.astype(np.int64))
        self._end = int(ends[-1])
