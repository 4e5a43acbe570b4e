"""Cached results of unchanged files. A result is valid for one content, one version of Stoker and one of Python.

A file whose size and time are unchanged is not even read. If only the time changed, the digest of the content
decides. A result also names the other files it depends on.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import stoker
from stoker.files import write_atomically
from stoker.version import __version__

# (size, time, digest) of a file, None for one that does not exist.
Stamp = tuple[int, int, bytes] | None
_NAME = "check.cache"


class Cache:
    """A file of results in a directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _NAME
        self._entries: dict[str, tuple[Stamp, dict[str, Stamp], Any]] = {}
        self._stats: dict[str, tuple[int, int] | None] = {}
        self._load()

    def recall(self, paths: Iterable[str]) -> dict[str, Any]:
        """Return the cached results that are still valid."""
        found = {}
        for path in paths:
            entry = self._entries.get(path)
            if entry is None:
                continue
            stamp, needs, result = entry
            if self._holds(path, stamp) and all(self._holds(p, s) for p, s in needs.items()):
                found[path] = result
        return found

    def remember(self, results: Mapping[str, Any], needs: Mapping[str, Iterable[str]]) -> None:
        """Cache results, and write the cache file."""
        for path, result in results.items():
            self._entries[path] = (_stamp(path), {need: _stamp(need) for need in needs[path]}, result)
        self._store()

    def _holds(self, path: str, stamp: Stamp) -> bool:
        now = self._stat(path)
        if now is None or stamp is None:
            return now is None and stamp is None
        if now == stamp[:2]:
            return True
        return now[0] == stamp[0] and _digest(path) == stamp[2]

    def _stat(self, path: str) -> tuple[int, int] | None:
        if path not in self._stats:
            try:
                status = os.stat(path)
                self._stats[path] = (status.st_size, status.st_mtime_ns)
            except OSError:
                self._stats[path] = None
        return self._stats[path]

    def _load(self) -> None:
        try:
            key, entries = marshal.loads(self._path.read_bytes())
        except (OSError, ValueError, EOFError, TypeError):
            # There is no cache yet, or a crash or another Python left an unreadable one: start over.
            return
        if key == fingerprint():
            self._entries = entries

    def _store(self) -> None:
        data = marshal.dumps((fingerprint(), self._entries))
        # A read-only project can be checked, but has no cache.
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, data)


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, _digest(path)


def _digest(path: str) -> bytes:
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).digest()
    except OSError:
        return b""


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Return a digest of Stoker's own code and of Python's version. Cached results are invalid once it changes."""
    top = os.path.dirname(os.path.abspath(stoker.__file__))
    stamps = [__version__, sys.version]
    for part in (os.path.join("doctor", "check"), os.path.join("doctor", "stalls")):
        for directory, subdirectories, names in os.walk(os.path.join(top, part)):
            subdirectories.sort()
            for name in sorted(name for name in names if name.endswith(".py")):
                path = os.path.join(directory, name)
                status = os.stat(path)
                stamps.append(f"{os.path.relpath(path, top)} {status.st_size} {status.st_mtime_ns}")
    return hashlib.blake2b("\n".join(stamps).encode(), digest_size=16).hexdigest()
