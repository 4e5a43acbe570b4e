"""Content hashes of files, directories, arrays and `tf.data` pipelines: the same content has the same hash anywhere."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Dataset, Nest
from stoker.tracking.store import pipelines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 1 << 20
# Arrays up to this size are hashed as a whole; for larger ones, this many bytes in evenly spread blocks are hashed.
WHOLE = 1 << 30


@dataclass(frozen=True)
class Fingerprint:
    """A hash whose prefix says what it covers, and the number of bytes.

    `sha256:...` covers everything, `sampled:...` a part, `sources:...` the parts of a pipeline (see `pipelines`), and
    `spec:...` only shapes and types, because nothing else is known.
    """

    hash: str
    size: int | None


def hash_path(path: Path) -> Fingerprint:
    """Hash a file, or the files of a directory with their names.

    Raises:
        ArgumentError: the path does not exist, or cannot be read.
    """
    try:
        if not path.is_dir():
            return _hash_file(path)
        whole = hashlib.sha256()
        size = 0
        for file in sorted(one for one in path.rglob("*") if one.is_file()):
            inner = _hash_file(file)
            whole.update(
                f"{file.relative_to(path).as_posix()}\0{inner.hash}\n".encode("utf-8", "surrogateescape")
            )
            size += inner.size or 0
        return Fingerprint(f"sha256:{whole.hexdigest()}", size)
    except OSError as error:
        raise ArgumentError(
            f"the artifact {path} cannot be read ({error.strerror}): give a file or a directory"
        ) from None


def _hash_file(path: Path) -> Fingerprint:
    whole = hashlib.sha256()
    size = 0
    # Opening a named pipe must not wait for somebody to write to it.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "neither a file nor a directory")
        while block := file.read(_BLOCK):
            whole.update(block)
            size += len(block)
    return Fingerprint(f"sha256:{whole.hexdigest()}", size)


def hash_data(data: Nest) -> Fingerprint:
    """Hash the data that a model is trained on: arrays, tensors on the host, tables, and tuples and dicts of them.

    A pipeline is identified by its sources and steps. A generator has no content until it runs, and reading a tensor on
    an accelerator would mean waiting for it, so only their shapes and types are hashed.
    """
    if hasattr(data, "element_spec"):
        return _hash_pipeline(data)
    whole = hashlib.sha256()
    size, sampled = 0, False
    for name, array in _list_arrays(data, ""):
        if array is None:
            return _hash_spec(_describe(data))
        whole.update(f"{name} ".encode())
        sampled |= _add_array(whole, array)
        size += int(array.nbytes)
    return Fingerprint(f"{'sampled' if sampled else 'sha256'}:{whole.hexdigest()}", size)


def _hash_pipeline(dataset: Dataset) -> Fingerprint:
    import numpy as np

    whole = hashlib.sha256()
    size, sampled = 0, False
    try:
        for name, content in pipelines.list_parts(dataset):
            whole.update(f"{name}\n".encode())
            if isinstance(content, pipelines.Files):
                sampled |= _add_files(whole, content)
                size += content.size
            elif content is not None:
                array = np.asarray(content)
                sampled |= _add_array(whole, array)
                size += int(array.nbytes)
    except (pipelines.UnseenError, OSError):  # OSError: a file has disappeared
        return _hash_spec(str(dataset.element_spec))
    return Fingerprint(f"{'sampled' if sampled else 'sources'}:{whole.hexdigest()}", size)


def _add_files(whole: hashlib._Hash, files: pipelines.Files) -> bool:
    """Hash the names and content of files, block by block. Return whether blocks were left out."""
    every = max(1, -(-files.size // WHOLE))
    number = 0
    for name, path in zip(files.names, files.paths, strict=True):
        size = os.path.getsize(path)
        whole.update(f"{name} {size}\n".encode("utf-8", "surrogateescape"))
        with open(path, "rb") as file:
            for start in range(0, size, _BLOCK):
                if number % every == 0:
                    file.seek(start)
                    whole.update(file.read(_BLOCK))
                number += 1
    return every > 1


def _add_array(whole: hashlib._Hash, array: NDArray[np.generic]) -> bool:
    """Hash the type, shape and content of an array. Return whether blocks were left out."""
    whole.update(f"{array.dtype} {array.shape}\n".encode())
    for block in _split_blocks(array):
        whole.update(block)
    return bool(array.nbytes > WHOLE)


def _hash_spec(spec: str) -> Fingerprint:
    return Fingerprint(f"spec:{hashlib.sha256(spec.encode()).hexdigest()}", None)


def _describe(data: Nest) -> str:
    if isinstance(data, Mapping):
        return str({name: _describe(inner) for name, inner in data.items()})
    if isinstance(data, tuple | list) and any(hasattr(inner, "shape") for inner in data):
        return str([_describe(inner) for inner in data])
    shape, kind = getattr(data, "shape", None), getattr(data, "dtype", None)
    return f"{type(data).__name__} {shape} {kind}"


def _list_arrays(data: Nest, name: str) -> Iterator[tuple[str, NDArray[np.generic] | None]]:
    """Yield the arrays in the data with their names; None for an object that cannot be read."""
    import numpy as np

    if data is None:
        return
    if isinstance(data, Mapping):
        for key in sorted(data, key=str):
            yield from _list_arrays(data[key], f"{name}/{key}")
    elif isinstance(data, np.ndarray):
        yield name, data
    elif hasattr(data, "columns") and hasattr(data, "to_numpy"):
        for column in data.columns:
            yield f"{name}/{column}", np.asarray(data[column])
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        if data and all(isinstance(item, int | float | str) for item in data):
            yield name, np.asarray(data)
        else:
            for place, inner in enumerate(data):
                yield from _list_arrays(inner, f"{name}/{place}")
    elif "CPU" in str(getattr(data, "device", "")) or hasattr(data, "to_numpy"):
        yield name, np.asarray(data)
    else:
        yield name, None


def _split_blocks(array: NDArray[np.generic]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of an array in blocks, without copying the whole array."""
    if array.dtype.hasobject:
        yield "\0".join(str(item) for item in array.ravel()).encode("utf-8", "replace")
        return
    if array.ndim == 0 or array.size == 0:
        yield array.tobytes()
        return
    rows = max(1, _BLOCK // max(1, array.nbytes // len(array)))
    starts = range(0, len(array), rows)
    every = max(1, -(-array.nbytes // WHOLE))
    for start in starts[::every]:
        block = array[start : start + rows]
        yield block.data.cast("B") if block.flags.c_contiguous else block.tobytes()
