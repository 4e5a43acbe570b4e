"""The copies of remote files on this machine: bounded, shared by its processes, the least recently used go first.

A copy is a directory named after the URL and the versions of its files, so it is never out of date: each use asks the
server which versions there are now. Files are fetched in parts, many at a time, under a temporary name.

    objects/s3/bucket/train/@1f0c...           the copy: the tree below the URL
    objects/s3/bucket/train/@1f0c....json      what it is, and its size
    objects/in-use/<process>                   the copies that a process uses: locked while it lives
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath

from stoker.errors import ArgumentError, UnavailableError
from stoker.files import make_private_directory, user_cache
from stoker.storage import room
from stoker.storage.copies import LocalCopy
from stoker.storage.remote import CONNECTIONS, MAGIC, Remote, RemoteFile, scheme_of, show_url
from stoker.units import size

# How much of a file one request asks for.
PART_BYTES = 8 << 20
# A file may change while it is fetched: how often to begin again.
_MOST_CHANGES = 5
_PLAIN_NAME = re.compile(r"(?![@.])[\w.=+, -]{1,120}")
# A file lock does not separate the threads of one process.
_threads = threading.RLock()
_origins: dict[Path, str] = {}


def local_path(
    url: str, suffixes: tuple[str, ...] = ("",), *, deep: bool = True, cache_bytes: int | None = None
) -> str:
    """A path on this machine for the same files as the URL: a file, a directory, or a glob.

    The files are there until this process ends.

    Args:
        url: of a file, a directory or a glob.
        suffixes: how the files of a directory end that are needed; all are by default.
        deep: whether files in directories below that one are needed.
        cache_bytes: the most that all copies on this machine may take; by default `STOKER_CACHE_BYTES`, or half of the
            disk.

    Raises:
        ArgumentError: there is nothing, or it does not fit.
        UnavailableError: the server cannot be reached.
    """
    remote = Remote(url)
    root = user_cache("objects")
    try:
        make_private_directory(root)
        with _threads:
            return _keep(remote, root, partial(_plan, remote, root, suffixes, deep), cache_bytes)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM):
            raise
        raise ArgumentError(
            f"cannot keep a copy of {remote.name} in {root} ({error.strerror}): make room there, or name another "
            "directory with STOKER_CACHE_DIR"
        ) from None


def origin_of(path: Path) -> str:
    """Where a file or directory comes from: its URL if it is a local copy, otherwise its own full path."""
    full = path.resolve()
    for parent in (full, *full.parents):
        if (url := _origins.get(parent)) is not None:
            inside = full.relative_to(parent).as_posix()
            return url if inside == "." else f"{url}/{inside}"
    return str(full)


def folder_of(root: Path, url: str) -> Path:
    """A directory below `root` that belongs to a URL, with a name that people recognise."""
    parts = [part for part in show_url(url).partition("://")[2].split("/") if part]
    # A name that is long or odd, or hides a secret, is there as its hash.
    return root.joinpath(
        scheme_of(url), *(part if _PLAIN_NAME.fullmatch(part) else _digest(part) for part in parts)
    )


def _keep(
    remote: Remote, root: Path, plan: Callable[[], tuple[LocalCopy, str]], cache_bytes: int | None
) -> str:
    limit = room.limit_of(root, cache_bytes)
    for _ in range(_MOST_CHANGES):
        copy, end = plan()
        if copy.bytes > limit:
            raise ArgumentError(
                f"{remote.name} takes {size(copy.bytes)}, but all copies together may take {size(limit)}: raise "
                f"cache_bytes= or {room.LIMIT_VARIABLE}"
            )
        room.pin(root, copy)
        with room.hold_lock(root / "locks" / _digest(remote.url)):
            if not copy.is_complete():
                room.make_room(root, limit - copy.bytes, copy)
                _fetch(remote, copy)
                if plan()[0].place != copy.place:
                    continue  # it has changed meanwhile
                copy.describe(complete=True)
                room.remove_other_versions(root, copy)
            os.utime(copy.about)
        # The name of a file, or a glob, is no part of the place.
        _origins[copy.place.resolve()] = copy.url.removesuffix(end).rstrip("/")
        return str(copy.place / end)
    raise UnavailableError(f"{remote.name} changes all the time: read it when it is complete")


def _plan(remote: Remote, root: Path, suffixes: tuple[str, ...], deep: bool) -> tuple[LocalCopy, str]:
    """The copy that is needed now, and the URL's place in it: the name of a file, a glob, or nothing.

    Raises:
        ArgumentError: nothing matches the URL, or it has a name that no file can have.
    """
    found = remote.find(deep=deep)
    base, end = remote.path.rstrip("/"), ""
    if MAGIC.search(base):
        fixed = MAGIC.split(base)[0].rpartition("/")[0]
        base, end = fixed, base[len(fixed) :].lstrip("/")
    elif [file.path for file in found] == [remote.path]:
        base, _, end = base.rpartition("/")
    else:
        found = [file for file in found if file.path.lower().endswith(suffixes)]
    files = {file.path.removeprefix(base).lstrip("/"): file for file in found}
    if not files:
        raise ArgumentError(_explain_nothing(remote, suffixes))
    for name in files:
        if ".." in PurePosixPath(name).parts or "\0" in name:
            raise ArgumentError(
                f"{remote.name} holds {name!r}, which cannot be the name of a file: rename it"
            )
    versions = [f"{name}\0{file.version}" for name, file in files.items()]
    folder = folder_of(root, remote.url)
    return LocalCopy(folder / f"@{_digest(remote.url, *versions)}", files, remote.name), end


def _explain_nothing(remote: Remote, suffixes: tuple[str, ...]) -> str:
    if MAGIC.search(remote.path):
        return f"no file matches {remote.name}"
    if all(suffixes) and remote.has_files():
        return f"the folder {remote.name} holds no file that ends in {' or '.join(suffixes)}"
    return f"there is no file or folder {remote.name}"


def _fetch(remote: Remote, copy: LocalCopy) -> None:
    """Fetch all files into the place of the copy; what an older copy has already is linked."""
    fresh = copy.place.with_name(f"{copy.place.name}.new")
    for leftover in (fresh, copy.place):
        shutil.rmtree(leftover, ignore_errors=True)
    older = copy.older_files()
    missing: list[tuple[Path, RemoteFile]] = []
    for name, file in copy.files.items():
        target = fresh / name
        target.parent.mkdir(parents=True, exist_ok=True)
        known = older.get((name, file.version))
        if known is None or not known.is_file():
            missing.append((target, file))
        else:
            os.link(known, target)
    pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="stoker-fetch")
    try:
        # One by one, in order: `map` raises what the first failed part raised.
        for _ in pool.map(lambda part: part(), _parts(remote, missing)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
    for target, file in missing:
        # The same for every copy of this version: what was made from one is still up to date when it was fetched again.
        os.utime(target, (0, int(_digest(file.version)[:7], 16)))
    fresh.rename(copy.place)


def _parts(remote: Remote, missing: list[tuple[Path, RemoteFile]]) -> Iterator[Callable[[], None]]:
    """One function for each request; together they write the files."""

    def fetch(target: Path, file: RemoteFile, start: int, end: int | None) -> None:
        data = remote.read(file, start, end)
        with target.open("r+b") as stream:
            stream.seek(start)
            stream.write(data)

    for target, file in missing:
        target.touch()
        if file.size <= PART_BYTES:
            yield partial(fetch, target, file, 0, None)
            continue
        for start in range(0, file.size, PART_BYTES):
            yield partial(fetch, target, file, start, min(start + PART_BYTES, file.size))


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=10).hexdigest()
