"""The store: arrays of equally many rows as plain binary files, which TensorFlow maps into memory inside the graph.

    writer = Writer(directory)            # or Writer(None): in memory
    writer.append("float32", block)       # [rows of this block, ...]
    store = writer.finish({"rows": n})
    store.array("float32")                # NumPy's view of the file
    store.tensor("float32")               # in a graph: the same bytes as a tensor, nothing copied

A file is mapped anew each time `tensor` runs, and let go with the tensor: an epoch maps it once. The files are kept
open and are found through their descriptors, so a store outlives its directory.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

META = "store.json"
# An empty file cannot be mapped.
_PADDING = b"\0" * 64
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One array: its type, the shape of all of it, and where it is."""

    dtype: str
    shape: tuple[int, ...]
    descriptor: int
    path: str

    @property
    def region(self) -> str:
        """The name under which TensorFlow finds the file."""
        return f"/proc/self/fd/{self.descriptor}" if sys.platform == "linux" else self.path


class Store:
    """Arrays that were written; see the module."""

    def __init__(self, entries: dict[str, Entry], meta: dict[str, Any]) -> None:
        self.entries = entries
        self.meta = meta
        self._close = weakref.finalize(self, _close, [entry.descriptor for entry in entries.values()])

    @property
    def rows(self) -> int:
        return int(self.meta["rows"])

    @property
    def bytes(self) -> int:
        """Of all arrays."""
        return sum(os.fstat(entry.descriptor).st_size for entry in self.entries.values())

    def array(self, name: str) -> Any:
        """NumPy's view, for reading only."""
        entry = self.entries[name]
        with open(os.dup(entry.descriptor), "rb") as file:
            return np.memmap(file, entry.dtype, "r", shape=entry.shape)

    def tensor(self, name: str) -> Any:
        """In a graph: the array as a tensor that is the mapped file.

        It comes out of an Optional made outside the graph. As an op of the graph TensorFlow would take it for a
        constant to fold, and copy all of it at the beginning of every epoch; as a captured tensor, once.
        """
        import tensorflow as tf

        entry = self.entries[name]
        with tf.init_scope():
            mapped = tf.raw_ops.ImmutableConst(
                dtype=tf.as_dtype(entry.dtype), shape=list(entry.shape), memory_region_name=entry.region
            )
            kept = tf.experimental.Optional.from_value(mapped)
        return kept.get_value()

    @classmethod
    def read(cls, directory: Path) -> Store:
        """Open a directory that a writer finished.

        Raises:
            OSError, ValueError, KeyError: it is not whole.
        """
        content = json.loads((directory / META).read_text(encoding="utf-8"))
        entries: dict[str, Entry] = {}
        try:
            for name, (dtype, shape) in content["entries"].items():
                path = directory / f"{name}.bin"
                entries[name] = _entry(dtype, tuple(shape), os.open(path, os.O_RDONLY), str(path))
        except BaseException:
            _close([entry.descriptor for entry in entries.values()])
            raise
        return cls(entries, content["meta"])


def _entry(dtype: str, shape: tuple[int, ...], descriptor: int, path: str) -> Entry:
    wanted = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if os.fstat(descriptor).st_size < wanted:
        os.close(descriptor)
        raise ValueError(f"{path} is shorter than the {wanted} bytes it should have")
    return Entry(dtype, shape, descriptor, path)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class Writer:
    """Writes arrays block by block, into a directory or into memory.

    Args:
        directory: made if it is not there; None keeps everything in memory (a temporary file where the system has
            no files in memory).
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._files: dict[str, BinaryIO] = {}
        self._shapes: dict[str, tuple[str, int, tuple[int, ...]]] = {}
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def append(self, name: str, block: Any) -> None:
        """Add rows to an array."""
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = self._open(name)
        dtype, rows, inner = self._shapes.get(name, (block.dtype.name, 0, block.shape[1:]))
        self._shapes[name] = (dtype, rows + len(block), inner)
        file.write(memoryview(np.ascontiguousarray(block)).cast("B"))

    def _open(self, name: str) -> BinaryIO:
        if self._directory is not None:
            return open(self._directory / f"{name}.bin", "w+b", buffering=_BUFFER)
        if hasattr(os, "memfd_create"):
            return os.fdopen(os.memfd_create(f"stoker-{name}"), "w+b", buffering=_BUFFER)
        return tempfile.NamedTemporaryFile(prefix="stoker-", buffering=_BUFFER)  # type: ignore[return-value]

    def finish(self, meta: dict[str, Any]) -> Store:
        """All rows are there.

        Raises:
            OSError: they could not be written.
        """
        for file in self._files.values():
            file.write(_PADDING)
            file.flush()
        shapes = {name: (dtype, (rows, *inner)) for name, (dtype, rows, inner) in self._shapes.items()}
        if self._directory is not None:
            content = json.dumps({"meta": meta, "entries": shapes})
            (self._directory / META).write_text(content, encoding="utf-8")
        # All is written: only now descriptors are taken that the store lets go of.
        entries = {
            name: Entry(*shapes[name], os.dup(file.fileno()), str(file.name))
            for name, file in self._files.items()
        }
        store = Store(entries, meta)
        if self._directory is None and not hasattr(os, "memfd_create"):
            # A temporary file is gone when it is closed.
            weakref.finalize(store, self.close)
        else:
            self.close()
        return store

    def close(self) -> None:
        """Let go of the files; what was buffered and cannot be written is lost."""
        for file in self._files.values():
            try:
                file.close()
            except OSError:
                # The disk is full: whoever wrote has heard of it.
                continue
        self._files = {}
