"""The recorded examples of a bundle: a few rows and their answers, in one `.npz` file without pickle.

Without pickle, NumPy cannot store strings of varying length, so an array of strings is stored as three: all bytes,
where each string ends, and the shape.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stoker.serve.signature import Array

Arrays = dict[str, Array]
# A few rows, uncompressed.
_MOST_BYTES = 1 << 30


def write(path: Path, inputs: Mapping[str, Array], answers: Mapping[str, Array]) -> None:
    """Store the examples."""
    stored: dict[str, Any] = {}
    for part, arrays in (("input", inputs), ("answer", answers)):
        for name, array in arrays.items():
            for what, plain in _plain(np.asarray(array)).items():
                stored[f"{part}/{name}/{what}"] = plain
    np.savez_compressed(path, **stored)


def read(path: Path) -> tuple[Arrays, Arrays]:
    """Read the inputs and answers by name.

    Raises:
        OSError, ValueError: the file is missing or damaged.
    """
    found: dict[str, dict[str, Arrays]] = {"input": {}, "answer": {}}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in _checked_members(archive):
                part, _, rest = member.filename.removesuffix(".npy").partition("/")
                name, _, what = rest.rpartition("/")
                found[part].setdefault(name, {})[what] = _read_array(archive, member)
        return _join_strings(found["input"]), _join_strings(found["answer"])
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
        NotImplementedError,  # another compression
        RuntimeError,  # encrypted
    ) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def _checked_members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """List the arrays in a file; refuse them if they are larger than examples can be."""
    members = archive.infolist()
    size = sum(one.file_size for one in members)
    if size > _MOST_BYTES:
        raise ValueError(f"it would grow to {size:,} bytes; examples are a few rows")
    return members


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """Read an array. Allocate nothing before its shape is known to fit the bytes in the file."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, by_columns, dtype = header(stream)
        if dtype.kind not in "biufc":
            raise ValueError(f"{member.filename} is of the type {dtype}, which no example has")
        count = math.prod(shape)
        content = stream.read()
        if min(shape, default=0) < 0 or count * dtype.itemsize != len(content):
            raise ValueError(f"{member.filename} does not hold as many bytes as its shape needs")
    found = np.frombuffer(bytearray(content), dtype) if content else np.empty(count, dtype)
    return found.reshape(shape, order="F" if by_columns else "C")


def is_text(array: Array) -> bool:
    """Return whether an array holds strings, in any of NumPy's forms."""
    return array.dtype.kind in "OSU"


def as_bytes(value: object) -> bytes:
    """Return a string as TensorFlow stores it."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8")


def _plain(array: Array) -> Arrays:
    if not is_text(array):
        return {"values": array}
    strings = [as_bytes(one) for one in array.ravel()]
    return {
        "bytes": np.frombuffer(b"".join(strings), np.uint8),
        "ends": np.cumsum([len(one) for one in strings], dtype=np.int64),
        "shape": np.array(array.shape, np.int64),
    }


def _join_strings(parts: dict[str, Arrays]) -> Arrays:
    return {name: one["values"] if "values" in one else _strings(one) for name, one in parts.items()}


def _strings(stored: Arrays) -> Array:
    text, ends = stored["bytes"].tobytes(), stored["ends"].tolist()
    if ends != sorted(ends) or any(not 0 <= end <= len(text) for end in ends):
        raise ValueError("its strings do not end where they should")
    array = np.empty(len(ends), object)
    array[:] = [text[first:last] for first, last in zip([0, *ends[:-1]], ends, strict=True)]
    return array.reshape(stored["shape"])
