"""Room for copies: a limit for all of them together, kept by removing the least recently used.

A process names the copies it uses in a file that it locks while it lives. A copy in such a file is never removed.
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
# The file that names what this process uses, by the root of the copies; the number is that of the process, because a
# forked one does not inherit the lock.
_named: dict[tuple[int, Path], TextIO] = {}
# A file lock does not separate the threads of one process.
_threads = threading.Lock()
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM)
# What this process uses: closing the file after reading it here would give up the lock.
_own: set[str] = set()


def limit_of(root: Path, given: int | None) -> int:
    """How many bytes all copies together may take: what was given, `STOKER_CACHE_BYTES`, or half of the disk.

    Raises:
        ArgumentError: it is not a number of bytes.
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
    """Keep a copy, complete or not yet, until this process ends."""
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
    """Remove the least recently used copies until the others take at most this many bytes.

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
    """Let only one process in at a time; the lock ends with the process. Threads must be kept apart by the caller."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        # Without locks in the file system, two processes do the same work, and one result stays.
        with contextlib.suppress(OSError):
            _take_lock(file, wait=True)
        yield


@contextlib.contextmanager
def explain_full_disk(name: str, root: Path) -> Iterator[None]:
    """Turn the errors of a directory that cannot be written into one line.

    Raises:
        ArgumentError: there is no room in it, or no permission.
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
    """The places of the copies that running processes use; what ended processes have left is removed."""
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
        OSError: another process has the lock, or there are none in this file system.
    """
    try:
        import fcntl
    except ImportError:
        # Windows: processes do not see each other.
        return
    fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
