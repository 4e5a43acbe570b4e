"""The store: arrays of equally many rows as plain binary files, which NumPy and TensorFlow see through one mapping.

    writer = Writer(directory)            # or Writer(None): in memory
    writer.append("float32", block)       # [rows of this block, ...]
    store = writer.finish({"rows": n})
    store.array("float32")                # NumPy's view of the file
    store.tensor("float32")               # in a graph: the same bytes as a tensor, nothing copied

The files are kept open and are found through their descriptors, so a store outlives its directory; a tensor outlives
the store.
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
from typing import Any, BinaryIO

import numpy as np

from stoker.tf_internals import datasets

META = "store.json"
# An empty file cannot be mapped.
_PADDING = b"\0" * 64
_BUFFER = 1 << 20
# MAP_NORESERVE, for which Python has no name.
_NO_RESERVE = 0x4000


@dataclass(frozen=True)
class Entry:
    """One array: its type, the shape of all of it, and its file."""

    dtype: str
    shape: tuple[int, ...]
    descriptor: int

    @property
    def size(self) -> int:
        """How many values it holds."""
        return int(np.prod(self.shape, dtype=np.int64))


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

        It comes out of an Optional made outside the graph. As an op of the graph (`ImmutableConst`) or a captured
        tensor TensorFlow would take it for a constant, and copy all of it.
        """
        import tensorflow as tf

        entry = self.entries[name]
        dtype = np.dtype(entry.dtype)
        # NumPy cannot hand over bfloat16 and the like.
        plain = np.dtype(f"u{dtype.itemsize}") if dtype.kind == "V" else dtype
        array = np.frombuffer(_mapped(entry.descriptor), plain, entry.size).reshape(entry.shape)
        with tf.init_scope():
            kept = tf.experimental.Optional.from_value(tf.experimental.dlpack.from_dlpack(array.__dlpack__()))
        # For the content hash of a pipeline over it, which could not look inside.
        datasets.variant(kept).stoker_content = array
        return tf.bitcast(kept.get_value(), dtype.name) if plain != dtype else kept.get_value()

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
                entries[name] = _entry(dtype, tuple(shape), directory / f"{name}.bin")
        except BaseException:
            _close([entry.descriptor for entry in entries.values()])
            raise
        return cls(entries, content["meta"])


def _entry(dtype: str, shape: tuple[int, ...], path: Path) -> Entry:
    entry = Entry(dtype, shape, os.open(path, os.O_RDONLY))
    wanted = entry.size * np.dtype(dtype).itemsize
    if os.fstat(entry.descriptor).st_size < wanted:
        os.close(entry.descriptor)
        raise ValueError(f"{path} is shorter than the {wanted} bytes it should have")
    return entry


def _mapped(descriptor: int) -> mmap.mmap:
    """The whole file, as something that may be written: NumPy hands over nothing else.

    Nobody writes, so no memory is reserved: a file may be larger than the machine's.
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
        file.write(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)

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
        entries = {name: Entry(*shapes[name], os.dup(file.fileno())) for name, file in self._files.items()}
        self.close()
        return Store(entries, meta)

    def close(self) -> None:
        """Let go of the files; what was buffered and cannot be written is lost."""
        for file in self._files.values():
            try:
                file.close()
            except OSError:
                # The disk is full: whoever wrote has heard of it.
                continue
        self._files = {}
