"""Room for copies: one limit for all of them, kept by removing the least recently used.

A process names the copies that it uses in a file, which it locks while it lives. A copy named in such a file is never
removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from stoker.errors import ArgumentError, whole_number
from stoker.storage.copies import LocalCopy, place_of, read_about, remove
from stoker.units import size

LIMIT_VARIABLE = "STOKER_CACHE_BYTES"
_IN_USE = "in-use"
# The file that names the copies this process uses, by process number and the root of the copies. The process number is
# part of the key because a forked process does not inherit the lock.
_named: dict[tuple[int, Path], TextIO] = {}
# A file lock does not separate the threads of one process.
_threads = threading.Lock()
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM)
# The copies that this process uses. It must not read them from its own file: closing the file would give up the lock.
_own: set[str] = set()


def limit_of(root: Path, given: int | None) -> int:
    """Return how many bytes all copies may take: the given number, `STOKER_CACHE_BYTES`, or half of the disk.

    Raises:
        ArgumentError: the limit is not a number of bytes.
    """
    if given is not None:
        return whole_number("cache_bytes", given, 1)
    named = os.environ.get(LIMIT_VARIABLE)
    if named is None:
        return shutil.disk_usage(root).total // 2
    if not named.isdecimal() or int(named) < 1:
        raise ArgumentError(f"{LIMIT_VARIABLE}={named!r} must be a number of bytes")
    return int(named)


def pin(root: Path, copy: LocalCopy) -> None:
    """Keep a copy, complete or not, until this process ends."""
    with _threads, hold_lock(root / "lock"):
        key = (os.getpid(), root)
        if key not in _named:
            (root / _IN_USE).mkdir(exist_ok=True)
            file = (root / _IN_USE / f"{os.getpid()}-{secrets.token_hex(3)}").open("w", encoding="utf-8")
            _take_lock(file, wait=True)
            _named[key] = file
        _named[key].write(f"{copy.place}\n")
        _named[key].flush()
        _own.add(str(copy.place))


def make_room(root: Path, room: int, keep: LocalCopy) -> None:
    """Remove the least recently used copies until the rest take at most this many bytes.

    Raises:
        ArgumentError: running processes use more than that.
    """
    with _threads, hold_lock(root / "lock"):
        copies = [(about.stat().st_mtime_ns, about) for about in root.rglob("@*.json") if about != keep.about]
        held = {about: int(read_about(about).get("bytes", 0)) for _, about in copies}
        used = _find_used(root)
        total = sum(held.values())
        for _, about in sorted(copies):
            if total > room and str(place_of(about)) not in used:
                remove(about)
                total -= held[about]
        if total > room:
            raise ArgumentError(
                f"no room for a copy of {keep.url}: running processes use {size(total)} of copies in {root}; "
                f"raise cache_bytes= or {LIMIT_VARIABLE}"
            )
        keep.describe(complete=False)


def remove_other_versions(root: Path, copy: LocalCopy) -> None:
    """Remove unused copies of other versions of the same URL."""
    with _threads, hold_lock(root / "lock"):
        used = _find_used(root)
        for about in copy.other_versions():
            if str(place_of(about)) not in used:
                remove(about)


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock that one process at a time can have and that ends with the process.

    The caller must keep threads apart.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        # Without locks in the file system, two processes may do the same work, and one result stays.
        with contextlib.suppress(OSError):
            _take_lock(file, wait=True)
        yield


@contextlib.contextmanager
def explain_full_disk(name: str, root: Path) -> Iterator[None]:
    """Turn the errors of a directory that cannot be written to into one line.

    Raises:
        ArgumentError: the directory has no room, or permission is denied.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise ArgumentError(
            f"cannot keep a copy of {name} in {root} ({error.strerror}): make room there, or name another "
            "directory with STOKER_CACHE_DIR"
        ) from None


def _find_used(root: Path) -> set[str]:
    """Return the directories of the copies that running processes use. Remove what ended processes left behind."""
    ours = {Path(file.name) for (process, _), file in _named.items() if process == os.getpid()}
    used = set(_own)
    for path in set((root / _IN_USE).glob("*")) - ours:
        if _is_locked(path):
            used |= set(path.read_text(encoding="utf-8").splitlines())
        else:
            path.unlink(missing_ok=True)
    return used


def _is_locked(path: Path) -> bool:
    with path.open("r+") as file:
        try:
            _take_lock(file, wait=False)
        except OSError:
            return True
    return False


def _take_lock(file: TextIO, *, wait: bool) -> None:
    """Lock a file until it is closed or this process ends.

    Raises:
        OSError: another process has the lock, or the file system has no locks.
    """
    try:
        import fcntl
    except ImportError:
        # Windows: processes do not see each other.
        return
    fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
