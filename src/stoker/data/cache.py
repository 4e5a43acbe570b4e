"""The cache of what was read: each store has a directory named after its files, their state and the options.

A file that has changed gets another directory, so a cache is never out of date. A store is written under a temporary
name and renamed when it is complete. A process that finds another one writing the same store waits and uses the result.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from stoker.data.columns import DataWarning
from stoker.data.store import Store, Writer
from stoker.errors import ArgumentError, check_local_path
from stoker.files import user_cache
from stoker.storage import arriving, origin_of, version_of
from stoker.storage.room import hold_lock

# A directory, None for the user's cache directory, or False to keep the store in memory.
CachePlace: TypeAlias = str | os.PathLike[str] | bool | None
# Takes a function that makes empty writers, and writes a store with the last of them.
MakeStore: TypeAlias = Callable[[Callable[[], Writer]], Store]
FORMAT = 1
# How many bytes of a file's beginning and end identify it, with its size and modification time.
_END = 1 << 16
# File locks do not separate the threads of one process.
_threads = threading.Lock()
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def read_file_state(path: Path) -> list[Any]:
    """Return values that change when a file does: its path or URL, with its version or its size, time and a hash."""
    if (version := version_of(path)) is not None:
        return [origin_of(path), version]
    (path,) = arriving([path])
    about = path.stat()
    with path.open("rb") as file:
        digest = hashlib.blake2b(file.read(_END), digest_size=16)
        file.seek(max(0, about.st_size - _END))
        digest.update(file.read(_END))
    return [origin_of(path), about.st_size, about.st_mtime_ns, digest.hexdigest()]


def load_or_make(make: MakeStore, source: list[Any], state: list[Any] | None, where: CachePlace) -> Store:
    """Return the store of this source, which `make` writes unless the cache has it.

    Args:
        make: writes the store.
        source: the files and the options, as JSON. A new state of the same source replaces the old one.
        state: the state of the files; None if nothing shows whether they changed, in which case nothing is cached.
        where: the cache.
    """
    if where is True:
        where = None
    check_local_path(where)
    if state is None or where is False:
        return make(lambda: Writer(None))
    root = Path(where) if where is not None else user_cache("data")
    check_local_path(root)
    family = _digest([FORMAT, source])
    place = root / f"{family}-{_digest(state)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _threads, hold_lock(root / f"{family}.lock"):
            return _read(place) or _write(make, place, family)
    except OSError as error:
        if error.errno not in (*_NO_ROOM, errno.EACCES, errno.EROFS, errno.EPERM):
            raise
        return _keep_in_memory(make, root, error)


def _digest(content: list[Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def _read(place: Path) -> Store | None:
    try:
        return Store.read(place)
    except (OSError, ValueError, KeyError):
        return None


def _write(make: MakeStore, place: Path, family: str) -> Store:
    for old in place.parent.glob(f"{family}-*"):
        # It belongs to another state of the files, or a killed process left it: we hold the lock.
        shutil.rmtree(old, ignore_errors=True)
    temporary = place.with_name(f"{place.name}.{os.getpid()}-{secrets.token_hex(3)}.new")

    def make_writer() -> Writer:
        shutil.rmtree(temporary, ignore_errors=True)
        return Writer(temporary)

    try:
        store = make(make_writer)
        with contextlib.suppress(OSError):
            # Another machine that shares the directory was faster; our copy is just as good, and already open.
            temporary.rename(place)
        return store
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _keep_in_memory(make: MakeStore, root: Path, error: OSError) -> Store:
    warnings.warn(
        f"Cannot cache in {root} ({error.strerror}): the rows are kept in memory for this run; "
        "make room there, or name another directory with cache=",
        DataWarning,
        stacklevel=2,
    )
    try:
        return make(lambda: Writer(None))
    except (OSError, MemoryError) as second:
        raise ArgumentError(
            f"the rows fit neither in {root} ({error.strerror}) nor in memory ({second}): "
            "make room, or name another directory with cache="
        ) from None
