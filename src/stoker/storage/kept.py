"""The copies of remote files on this machine: bounded, shared by all processes, removed least recently used first.

A copy is a directory named after the URL and the versions of its files, so it is never out of date: each use asks the
server for the current versions. Files are fetched in parts, many at a time, under a temporary name.

    objects/s3/bucket/train/@1f0c...           the copy: the tree below the URL
    objects/s3/bucket/train/@1f0c....json      a description of the copy, and its size
    objects/in-use/<process>                   the copies that a process uses: locked while the process lives
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from stoker.errors import ArgumentError, StokerError, UnavailableError
from stoker.files import make_private_directory, user_cache
from stoker.storage import room
from stoker.storage.copies import LocalCopy
from stoker.storage.fetching import Fetch, digest
from stoker.storage.remote import MAGIC, ChangedError, Remote, RemoteFile, scheme_of, show_url
from stoker.units import alternatives, size

# A file may change while it is fetched: how many times to start again.
_MOST_CHANGES = 5
_PLAIN_NAME = re.compile(r"(?![@.])[\w.=+, -]{1,120}")


@dataclass(frozen=True)
class _Origin:
    """The origin of the files of a local copy."""

    url: str
    files: dict[str, RemoteFile]


_origins: dict[Path, _Origin] = {}
# The fetches that have begun and are not known to be complete, by the directory of the copy.
_fetches: dict[Path, Fetch] = {}


def local_path(
    url: str, suffixes: tuple[str, ...] = ("",), *, deep: bool = True, cache_bytes: int | None = None
) -> str:
    """Return a path on this machine for the same files as the URL: a file, a directory, or a glob.

    The files stay until this process ends.

    Args:
        url: the URL of a file, a directory or a glob.
        suffixes: the endings of the files that are needed from a directory; by default all files are.
        deep: whether files in subdirectories are needed.
        cache_bytes: the most that all copies on this machine may take; by default `STOKER_CACHE_BYTES`, or half of the
            disk.

    Raises:
        ArgumentError: no file matches, or the copy does not fit.
        UnavailableError: the server cannot be reached.
    """
    remote = Remote(url)
    for _ in range(_MOST_CHANGES):
        fetch, end = _prepare(remote, suffixes, deep, cache_bytes)
        fetch.run()
        try:
            fetch.wait()
        except ChangedError:
            continue
        _fetches.pop(fetch.copy.place, None)
        return str(fetch.copy.place / end)
    raise UnavailableError(f"{remote.name} keeps changing: read it when it is complete")


def begin_copy(
    url: str, suffixes: tuple[str, ...], cache_bytes: int | None = None
) -> tuple[Fetch, list[Path]]:
    """Return the fetch and the paths that `local_path` gives; some files may not be here yet: see `arriving`.

    Args:
        url: the URL of a file, a directory (without its subdirectories) or a glob without `**`.
        suffixes: the endings of the files that are needed from a directory.
        cache_bytes: see `local_path`.
    """
    fetch, end = _prepare(Remote(url), suffixes, False, cache_bytes)
    copy = fetch.copy
    if copy.is_complete():
        _fetches.pop(copy.place, None)
        fetch.run()
    else:
        _fetches[copy.place] = fetch
        fetch.begin()
    return fetch, sorted(copy.place / name for name in copy.files if not end or _matches(name, end))


def arriving(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the same paths, each once its file is there. After the last one, all files are known to be of one version.

    Raises:
        ChangedError: the files are of several versions.
        ArgumentError: a file cannot be fetched.
    """
    used: dict[Path, Fetch] = {}
    for path in paths:
        place = next((parent for parent in path.parents if parent in _fetches), None)
        if place is not None:
            used[place] = _fetches[place]
            used[place].wait_for(path.relative_to(place).as_posix())
        yield path
    for place, fetch in used.items():
        fetch.wait()
        _fetches.pop(place, None)


def has_changed(fetches: Iterable[Fetch]) -> bool:
    """Wait until all files are there, and return whether they changed while they were fetched."""
    for fetch in fetches:
        try:
            fetch.wait()
        except ChangedError:
            return True
        except StokerError:
            return False
    return False


def origin_of(path: Path) -> str:
    """Return where a file or directory comes from: its URL if it is a local copy, otherwise its own full path."""
    full = path.resolve()
    for parent in (full, *full.parents):
        if (origin := _origins.get(parent)) is not None:
            inside = full.relative_to(parent).as_posix()
            return origin.url if inside == "." else f"{origin.url}/{inside}"
    return str(full)


def version_of(path: Path) -> str | None:
    """Return a text that changes with the content behind the URL; None if this is not a copy or nobody can tell."""
    full = path.resolve()
    for parent in full.parents:
        if (origin := _origins.get(parent)) is not None:
            file = origin.files.get(full.relative_to(parent).as_posix())
            return file.version if file is not None and file.has_version else None
    return None


def folder_of(root: Path, url: str) -> Path:
    """Return a directory below `root` for a URL, with a name that people recognise."""
    parts = [part for part in show_url(url).partition("://")[2].split("/") if part]
    # A part that is long or odd, or hides a secret, is replaced by its hash.
    return root.joinpath(
        scheme_of(url), *(part if _PLAIN_NAME.fullmatch(part) else digest(part) for part in parts)
    )


def _prepare(
    remote: Remote, suffixes: tuple[str, ...], deep: bool, cache_bytes: int | None
) -> tuple[Fetch, str]:
    """Return the fetch that is needed, and the URL's place in the copy: the name of a file, a glob, or nothing.

    Raises:
        ArgumentError: no file matches, or the copy does not fit.
    """
    root = user_cache("objects")
    with room.explain_full_disk(remote.name, root):
        make_private_directory(root)
        limit = room.limit_of(root, cache_bytes)
        copy, end = _plan(remote, root, suffixes, deep)
        if copy.bytes > limit:
            raise ArgumentError(
                f"{remote.name} takes {size(copy.bytes)}, but all copies together may take {size(limit)}: raise "
                f"cache_bytes= or {room.LIMIT_VARIABLE}"
            )
        room.pin(root, copy)
    # The name of a file, or a glob, is not part of the origin.
    _origins[copy.place.resolve()] = _Origin(copy.url.removesuffix(end).rstrip("/"), copy.files)
    return Fetch(remote, copy, root, limit, lambda: _plan(remote, root, suffixes, deep)[0]), end


def _matches(name: str, pattern: str) -> bool:
    """Return whether `glob.glob` would find the file by this pattern."""
    names, patterns = name.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(
        fnmatch.fnmatchcase(one, wanted) and (wanted.startswith(".") or not one.startswith("."))
        for one, wanted in zip(names, patterns, strict=True)
    )


def _plan(remote: Remote, root: Path, suffixes: tuple[str, ...], deep: bool) -> tuple[LocalCopy, str]:
    """Return the copy that is needed now, and the URL's place in it: the name of a file, a glob, or nothing.

    Raises:
        ArgumentError: nothing matches the URL, or a match has a name that no file can have.
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
    return LocalCopy(folder / f"@{digest(remote.url, *versions)}", files, remote.name), end


def _explain_nothing(remote: Remote, suffixes: tuple[str, ...]) -> str:
    if MAGIC.search(remote.path):
        return f"no file matches {remote.name}"
    if all(suffixes) and remote.has_files():
        return f"the folder {remote.name} holds no file that ends in {alternatives(suffixes)}"
    return f"there is no file or folder {remote.name}"
