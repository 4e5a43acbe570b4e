"""The store: arrays with the same number of rows, kept as plain binary files that both NumPy and TensorFlow map.

    writer = Writer(directory)            # or Writer(None): in memory
    writer.append("float32", block)       # [rows of this block, ...]
    store = writer.finish({"rows": n})
    store.array("float32")                # the mapped file as a NumPy array
    store.tensor("float32")               # in a graph: the same bytes as a tensor, without a copy

The store keeps its files open, so it outlives its directory; a tensor outlives the store.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypedDict

import numpy as np

from stoker.data.array_types import Array
from stoker.tf_internals import datasets
from stoker.tf_internals.types import Tensor

META = "store.json"
# An empty file cannot be mapped.
_PADDING = b"\0" * 64
_BUFFER = 1 << 20
# MAP_NORESERVE, for which Python has no name.
_NO_RESERVE = 0x4000


class StoreMeta(TypedDict, total=False):
    """The facts that a store keeps about its arrays, as JSON.

    Attributes:
        rows: the number of rows of every array.
        columns: for a table: its columns, as the fields of `Column`.
        missing: for a table: how many values each column lacks.
        largest: for a table: the largest whole number of each column with missing values.
        values: for a table: what the codes of each category stand for.
        skipped: for images: how many could not be decoded.
        vocabulary: for texts: the words that the ids stand for.
        found: for a table read leniently: see `LenientTable.found`.
    """

    rows: int
    columns: list[dict[str, Any]]
    missing: dict[str, int]
    largest: dict[str, float]
    values: dict[str, list[str]]
    skipped: int
    vocabulary: list[str]
    found: dict[str, Any]


@dataclass(frozen=True)
class StoreEntry:
    """One array: its type, its whole shape, and the descriptor of its file."""

    dtype: str
    shape: tuple[int, ...]
    descriptor: int

    @property
    def size(self) -> int:
        """The number of values in the array."""
        return int(np.prod(self.shape, dtype=np.int64))


class Store:
    """Arrays that a `Writer` has written; see the module's docstring."""

    def __init__(self, entries: dict[str, StoreEntry], meta: StoreMeta) -> None:
        self.entries = entries
        self.meta = meta
        self._close = weakref.finalize(self, _close, [entry.descriptor for entry in entries.values()])

    @property
    def rows(self) -> int:
        return self.meta["rows"]

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        return sum(os.fstat(entry.descriptor).st_size for entry in self.entries.values())

    def array(self, name: str) -> Array:
        """Return the array as NumPy sees it, read-only."""
        entry = self.entries[name]
        with open(os.dup(entry.descriptor), "rb") as file:
            return np.memmap(file, entry.dtype, "r", shape=entry.shape)

    def tensor(self, name: str) -> Tensor:
        """Return, in a graph, the mapped file as a tensor.

        It comes from an Optional made outside the graph. TensorFlow would treat an op of the graph (`ImmutableConst`)
        or a captured tensor as a constant, and copy all of it.
        """
        import tensorflow as tf

        entry = self.entries[name]
        dtype = np.dtype(entry.dtype)
        # NumPy cannot pass on bfloat16 and the like.
        plain = np.dtype(f"u{dtype.itemsize}") if dtype.kind == "V" else dtype
        array = np.frombuffer(_map_file(entry.descriptor), plain, entry.size).reshape(entry.shape)
        with tf.init_scope():
            kept = tf.experimental.Optional.from_value(tf.experimental.dlpack.from_dlpack(array.__dlpack__()))
        # The content hash of a pipeline cannot look inside the Optional.
        datasets.variant(kept).stoker_content = array
        return tf.bitcast(kept.get_value(), dtype.name) if plain != dtype else kept.get_value()

    def strings(self, name: int | str, rows: Tensor) -> Tensor:
        """Return, in a graph, the strings of chosen rows.

        The array `text-NAME` has the characters of all strings, one after the other; row `n` lies between ends `n` and
        `n + 1` of the array `ends-NAME`.
        """
        import tensorflow as tf

        ends = self.tensor(f"ends-{name}")
        spans = tf.ragged.range(tf.gather(ends, rows), tf.gather(ends, rows + 1))
        chosen = tf.cast(tf.gather(self.tensor(f"text-{name}"), spans.values), tf.int32)
        return tf.strings.unicode_encode(spans.with_values(chosen), "UTF-8", errors="strict")

    @classmethod
    def read(cls, directory: Path) -> Store:
        """Open a directory that a writer finished.

        Raises:
            OSError, ValueError, KeyError: the directory is incomplete.
        """
        content = json.loads((directory / META).read_text(encoding="utf-8"))
        entries: dict[str, StoreEntry] = {}
        try:
            for name, (dtype, shape) in content["entries"].items():
                entries[name] = _entry(dtype, tuple(shape), directory / f"{name}.bin")
        except BaseException:
            _close([entry.descriptor for entry in entries.values()])
            raise
        return cls(entries, content["meta"])


def _entry(dtype: str, shape: tuple[int, ...], path: Path) -> StoreEntry:
    entry = StoreEntry(dtype, shape, os.open(path, os.O_RDONLY))
    wanted = entry.size * np.dtype(dtype).itemsize
    if os.fstat(entry.descriptor).st_size < wanted:
        os.close(entry.descriptor)
        raise ValueError(f"{path} is shorter than the {wanted} bytes it should have")
    return entry


def _map_file(descriptor: int) -> mmap.mmap:
    """Map the whole file as writable, because NumPy shares only writable arrays.

    Nothing writes to it, so no memory is reserved, and a file may be larger than the memory.
    """
    if sys.platform == "linux":
        flags = mmap.MAP_PRIVATE | _NO_RESERVE
        return mmap.mmap(descriptor, 0, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class Writer:
    """Writes arrays block by block, into a directory or into memory.

    Args:
        directory: created if necessary; None keeps everything in memory (in a temporary file if the system has no files
            in memory).
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._files: dict[str, IO[bytes]] = {}
        self._shapes: dict[str, tuple[str, int, tuple[int, ...]]] = {}
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def append(self, name: str, block: Array) -> None:
        """Add rows to an array."""
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = self._open(name)
        dtype, rows, inner = self._shapes.get(name, (block.dtype.name, 0, block.shape[1:]))
        self._shapes[name] = (dtype, rows + len(block), inner)
        file.write(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)

    def _open(self, name: str) -> IO[bytes]:
        if self._directory is not None:
            return open(self._directory / f"{name}.bin", "w+b", buffering=_BUFFER)
        if hasattr(os, "memfd_create"):
            return os.fdopen(os.memfd_create(f"stoker-{name}"), "w+b", buffering=_BUFFER)
        return tempfile.TemporaryFile(prefix="stoker-", buffering=_BUFFER)

    def finish(self, meta: StoreMeta) -> Store:
        """Finish the store, after all rows have been appended.

        Raises:
            OSError: the rows could not be written.
        """
        for file in self._files.values():
            file.write(_PADDING)
            file.flush()
        shapes = {name: (dtype, (rows, *inner)) for name, (dtype, rows, inner) in self._shapes.items()}
        if self._directory is not None:
            content = json.dumps({"meta": meta, "entries": shapes})
            (self._directory / META).write_text(content, encoding="utf-8")
        # The store closes these descriptors, so they are duplicated only now, when nothing can fail any more.
        entries = {
            name: StoreEntry(*shapes[name], os.dup(file.fileno())) for name, file in self._files.items()
        }
        self.close()
        return Store(entries, meta)

    def close(self) -> None:
        """Close the files; buffered data that cannot be written is lost."""
        for file in self._files.values():
            try:
                file.close()
            except OSError:
                # The disk is full; the write that failed has been reported.
                continue
        self._files = {}
