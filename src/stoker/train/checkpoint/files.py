"""One checkpoint, one file: arrays with checksums, then an index, then a tail that says where the index is.

    head    magic, version of the format
    arrays  raw bytes, one after the other
    index   JSON: name, type, shape, offset, size and CRC-32 of every array, and the caller's details
    tail    offset, length and CRC-32 of the index, magic

The index comes after the arrays, so that they are streamed from where they are, without ever copying the whole. A file
gets its name only once it is complete and on the disk (temporary name, fsync, rename, fsync of the directory); a
truncated file lacks its tail, and a file that was changed later fails a checksum. Checksums do not stop an attacker:
every length and offset is compared with the file's own length before anything is allocated or read.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from stoker.files import replacing
from stoker.tf_internals.types import Array
from stoker.train.checkpoint.options import CheckpointError

VERSION = 1
TEMPORARY = ".partial"

_MAGIC = b"STOKERCK"
_HEAD = struct.Struct("<8sI")
_TAIL = struct.Struct("<QQI8s")
# Large enough to be quick, small enough that the writing thread releases the interpreter often.
_CHUNK = 4 * 1024 * 1024

_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this process may write",
}


class DamagedFile(Exception):
    """The file is not a complete, unchanged checkpoint of a version that we read; the message says why."""


@dataclass(frozen=True)
class ArrayEntry:
    """One array in a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int
    crc: int


@dataclass(frozen=True)
class Index:
    """The index of a file."""

    path: Path
    entries: dict[str, ArrayEntry]
    details: dict[str, Any]


@dataclass(frozen=True)
class Contents:
    """The contents of a file that was read and found good."""

    index: Index
    arrays: dict[str, Array]


def write(path: Path, arrays: Iterable[tuple[str, Array]], details: Mapping[str, Any]) -> None:
    """Write a file that appears whole or not at all.

    Raises:
        CheckpointError: the disk refuses; nothing is left behind.
    """
    try:
        with replacing(path, durable=True, temporary=path.with_name(path.name + TEMPORARY)) as file:
            _write_all(file, arrays, details)
    except OSError as error:
        reason = _FULL.get(error.errno or 0, error.strerror or str(error))
        raise CheckpointError(
            f"could not write the checkpoint {path}: {reason}; the ones before it are untouched"
        ) from error


def _write_all(file: BinaryIO, arrays: Iterable[tuple[str, Array]], details: Mapping[str, Any]) -> None:
    file.write(_HEAD.pack(_MAGIC, VERSION))
    entries = []
    for name, array in arrays:
        offset, crc = file.tell(), 0
        raw = as_bytes(array)
        for start in range(0, len(raw), _CHUNK):
            chunk = raw[start : start + _CHUNK]
            crc = zlib.crc32(chunk, crc)
            file.write(chunk)
        entries.append(asdict(ArrayEntry(name, array.dtype.name, tuple(array.shape), offset, len(raw), crc)))
    index = json.dumps({"entries": entries, "details": details}).encode()
    offset = file.tell()
    file.write(index)
    file.write(_TAIL.pack(offset, len(index), zlib.crc32(index), _MAGIC))


def as_bytes(array: Array) -> memoryview:
    """Return the bytes of a contiguous array, without a copy. Types such as bfloat16 have no buffer of their own."""
    return array.reshape(-1).view(np.uint8).data


def read(path: Path) -> Contents:
    """Read everything in the file, each byte once, and check it against its checksum.

    Raises:
        DamagedFile: the file is not a complete, unchanged checkpoint of this version.
    """
    try:
        with _open(path) as file:
            index = _read_index(path, file)
            arrays = {name: _read_array(file, entry) for name, entry in index.entries.items()}
    except OSError as error:
        raise DamagedFile(f"it cannot be read ({error.strerror})") from error
    return Contents(index, arrays)


def checksum(path: Path) -> tuple[int, int]:
    """Return the length and the CRC-32 of a whole file.

    Raises:
        DamagedFile: the file cannot be read.
    """
    size = crc = 0
    try:
        with _open(path) as file:
            while chunk := file.read(_CHUNK):
                size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    except OSError as error:
        raise DamagedFile(f"it cannot be read ({error.strerror})") from error
    return size, crc


def _open(path: Path) -> BufferedReader:
    """Open a regular file. Others are refused: a pipe would block forever, and a device has no end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise DamagedFile("it is not a regular file")
    return open(descriptor, "rb")


def _read_index(path: Path, file: BufferedReader) -> Index:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size < _HEAD.size + _TAIL.size:
        raise DamagedFile(f"it is cut short ({size} bytes)")
    magic, version = _HEAD.unpack(file.read(_HEAD.size))
    if magic != _MAGIC:
        raise DamagedFile("it does not begin as a checkpoint does")
    if version != VERSION:
        raise DamagedFile(f"it is of format {version}, this version of Stoker reads format {VERSION}")
    file.seek(size - _TAIL.size)
    offset, length, crc, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != _MAGIC or offset < _HEAD.size or offset + length + _TAIL.size != size:
        raise DamagedFile("its end is missing")
    file.seek(offset)
    index = file.read(length)
    if zlib.crc32(index) != crc:
        raise DamagedFile("its index does not match its checksum")
    try:
        parsed = json.loads(index)
        entries = [ArrayEntry(**{**entry, "shape": tuple(entry["shape"])}) for entry in parsed["entries"]]
        details = parsed["details"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedFile(f"its index is not that of a checkpoint ({type(error).__name__})") from None
    for entry in entries:
        _check_entry(entry, offset)
    found = {entry.name: entry for entry in entries}
    if len(found) != len(entries) or sum(entry.size for entry in entries) > offset - _HEAD.size:
        raise DamagedFile("its index names the same bytes twice")
    if not isinstance(details, dict):
        raise DamagedFile("its index has no details")
    return Index(path, found, details)


def _check_entry(entry: ArrayEntry, end: int) -> None:
    """Check that the array lies within the file and before the index."""
    numbers = (*entry.shape, entry.offset, entry.size, entry.crc)
    if not isinstance(entry.name, str) or not all(type(one) is int and one >= 0 for one in numbers):
        raise DamagedFile("its index has an invalid length, offset or name")
    try:
        dtype = np.dtype(entry.dtype) if isinstance(entry.dtype, str) else None
    except (TypeError, ValueError):
        dtype = None
    # Objects, texts and dates are never written. If they were read, their bytes would be taken for addresses.
    if dtype is None or (dtype.kind not in "biufc" and dtype.type.__module__ != "ml_dtypes"):
        raise DamagedFile(
            f"{entry.name[:80]} is of the type {str(entry.dtype)[:40]!r}, which no checkpoint has"
        )
    if entry.offset < _HEAD.size or entry.offset + entry.size > end:
        raise DamagedFile(f"{entry.name[:80]} extends past the end of the file")
    if math.prod(entry.shape) * dtype.itemsize != entry.size:
        raise DamagedFile(f"{entry.name[:80]} does not hold as many bytes as its shape needs")


def _read_array(file: BufferedReader, entry: ArrayEntry) -> Array:
    array: Array = np.empty(entry.shape, np.dtype(entry.dtype))
    raw = as_bytes(array)
    file.seek(entry.offset)
    crc = 0
    for start in range(0, entry.size, _CHUNK):
        chunk = raw[start : min(start + _CHUNK, entry.size)]
        if file.readinto(chunk) != len(chunk):
            raise DamagedFile(f"{entry.name} ended early")
        crc = zlib.crc32(chunk, crc)
    if crc != entry.crc or len(raw) != entry.size:
        raise DamagedFile(f"{entry.name} does not match its checksum")
    return array
