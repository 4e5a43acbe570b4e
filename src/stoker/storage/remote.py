"""The files behind a URL: listed, read, written and deleted through fsspec.

Every request is retried with back-off until the backend answers or refuses, or a minute has passed. The backends have
retries of their own; these cover the failures that they let through, such as a body that ends too early.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from stoker import clock
from stoker.errors import ArgumentError, StokerError, UnavailableError, first_line
from stoker.redaction import redact_text

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
# The extra that installs the backend of a scheme.
_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "azure"),
}
# The fields that tell versions of an object apart: the first one that the backend knows, together with the size.
_CONTENT_KEYS = ("ETag", "etag", "generation", "md5Hash", "content_md5")
_TIME_KEYS = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _PATIENCE_S, _MOST_ATTEMPTS = 0.1, 5.0, 60.0, 8
# Errors that a backend means: another request would not help.
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError, ValueError)
# The characters that make a path a glob.
MAGIC = re.compile(r"[*?[]")
# The largest number of requests at a time.
CONNECTIONS = 16

Result = TypeVar("Result")


@dataclass(frozen=True)
class RemoteFile:
    """A file behind a URL.

    Attributes:
        path: the path in the file system, without the scheme.
        size: in bytes; -1 if the server does not say.
        version: a text that changes when the content does.
    """

    path: str
    size: int
    version: str

    @property
    def has_version(self) -> bool:
        """Whether the server tells versions apart by more than the size."""
        return not self.version.startswith(" ")


class ChangedError(UnavailableError):
    """A file changed while it was read, so its parts may not fit together."""


class ShortRead(OSError):
    """A body ended before it reached its length."""


def is_url(path: object) -> bool:
    """Return whether the path is the URL of a file elsewhere, rather than a path on this machine."""
    match = _URL.match(path) if isinstance(path, str) else None
    return match is not None and match[1].lower() != "file"


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, in lower case."""
    match = _URL.match(url)
    assert match is not None
    return match[1].lower()


def show_url(url: str) -> str:
    """Return the URL for messages and file names: without secrets, and without a query, which is often a secret."""
    return redact_text(url.partition("?")[0])


class Remote:
    """One URL and the file system behind it.

    Raises:
        StokerError: the backend is not installed.
        ArgumentError: no backend knows the scheme, or it refuses the URL.
    """

    def __init__(self, url: str) -> None:
        url = url.rstrip("/")
        self.url, self.name = url, show_url(url)
        try:
            from fsspec.core import url_to_fs

            self._system, self.path = url_to_fs(url, **_options_for(scheme_of(url)))
        except ImportError as error:
            extra = _EXTRAS.get(scheme_of(url))
            what = f"pip install 'stoker[{extra}]'" if extra else f"its backend for fsspec ({error})"
            raise StokerError(f"{self.name}: {scheme_of(url)}:// needs fsspec: install {what}") from None
        except ValueError as error:
            raise ArgumentError(f"{self.name}: {_redact_first_line(error)}") from None

    def find(self, *, deep: bool = True) -> list[RemoteFile]:
        """Return the files that the URL names, sorted: the file itself, the matches of the glob, or all files below it.

        Args:
            deep: whether to include files in subdirectories.
        """

        def find() -> dict[str, Mapping[str, Any]]:
            self._system.invalidate_cache()
            if MAGIC.search(self.path):
                found = self._system.glob(self.path, detail=True)
                return {name: about for name, about in found.items() if about["type"] == "file"}
            about = _info(self._system, self.path)
            if about is not None and about["type"] == "file":
                return {self.path: about}
            try:
                return dict(self._system.find(self.path, maxdepth=None if deep else 1, detail=True))
            except FileNotFoundError:
                return {}

        found = self._ask(find)
        # A folder of a bucket may be an empty object whose name ends in a slash.
        return [_as_file(name, about) for name, about in sorted(found.items()) if not name.endswith("/")]

    def has_files(self) -> bool:
        """Return whether there is a file at or below the URL."""
        return bool(self.find())

    def state(self, path: str) -> RemoteFile | None:
        """Return the current state of the file at this path; None if there is no file."""

        def look() -> RemoteFile | None:
            self._system.invalidate_cache()
            about = _info(self._system, path)
            return None if about is None or about["type"] != "file" else _as_file(path, about)

        return self._ask(look)

    def read(self, file: RemoteFile, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes of a file, or a range of them."""
        whole = start == 0 and end is None
        length = file.size if whole else (end or file.size) - start

        def read() -> bytes:
            place = {} if whole else {"start": start, "end": end}
            data: bytes = self._system.cat_file(file.path, **place)
            if file.size >= 0 and len(data) != length:
                self._system.invalidate_cache()
                if _as_file(file.path, self._system.info(file.path)).version != file.version:
                    raise ChangedError(f"{self.name} changes while it is read: read it when it is complete")
                raise ShortRead(f"{len(data):,} of {length:,} bytes arrived")
            return data

        return self._ask(read, file.path)

    def write(self, path: str, data: bytes) -> None:
        """Write a file, whole or not at all."""
        self._ask(lambda: self._system.pipe_file(path, data), path)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one already. False if that one has different content.

        If the store has no such request, the file is written in any case.
        """

        def create() -> None:
            try:
                self._system.pipe_file(path, data, mode="create")
            except (TypeError, NotImplementedError):
                self._system.pipe_file(path, data)

        try:
            self._ask(create, path)
        except FileExistsError:
            # An earlier attempt may have succeeded although its answer got lost.
            there = self.state(path)
            return there is not None and self.read(there) == data
        return True

    def upload(self, source: Path, path: str) -> None:
        """Upload a copy of a local file, whole or not at all.

        Raises:
            OSError: the local file cannot be read.
        """
        source.stat()

        def upload() -> None:
            if scheme_of(self.url) not in _EXTRAS:
                # Buckets have no directories; hdfs and memory do.
                self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.put_file(str(source), path)

        self._ask(upload, path)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files. A file that is already gone is not an error."""

        def delete(path: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self._system.rm_file(path)

        for path in paths:
            self._ask(partial(delete, path), path)

    def _ask(self, request: Callable[[], Result], path: str = "") -> Result:
        """Return the answer to a request, and repeat the request while that may help.

        Raises:
            ArgumentError: the file does not exist, or access is denied.
            UnavailableError: the server cannot be reached, or keeps failing.
        """
        name = show_url(f"{scheme_of(self.url)}://{path}") if path else self.name
        deadline_ns = clock.real_ns() + int(_PATIENCE_S * 1e9)
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            try:
                return request()
            except (FileExistsError, ChangedError):
                raise
            except _FINAL as error:
                raise _refusal(name, error) from None
            except Exception as error:  # noqa: BLE001 - each backend has exceptions of its own, without a common base
                if attempt == _MOST_ATTEMPTS or clock.real_ns() > deadline_ns:
                    raise UnavailableError(f"{name} cannot be used: {_redact_first_line(error)}") from None
            # Processes that were refused together must not return together.
            time.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        raise AssertionError("the last attempt returns or raises")


def read_bytes(url: str) -> bytes:
    """Return the content of a file.

    Raises:
        ArgumentError: the file does not exist.
    """
    remote = Remote(url)
    (file,) = remote.find(deep=False) or [RemoteFile(remote.path, -1, "")]
    return remote.read(file)


def list_names(url: str) -> set[str]:
    """Return the names of all files below a URL, relative to it."""
    remote = Remote(url)
    return {file.path.removeprefix(remote.path).lstrip("/") for file in remote.find()}


def put_tree(source: Path, url: str, last: str, replaced: Collection[str] = ()) -> None:
    """Copy a directory to a URL. The file `last` is written last, so a reader never sees a partial directory.

    Args:
        source: the directory.
        url: where the files go.
        last: the file that makes the directory count.
        replaced: files at the URL that this directory replaces: those that it does not contain are deleted at the end.
            If `last` is among them, the old `last` is deleted first.

    Raises:
        ArgumentError: writing is denied.
        UnavailableError: the server cannot be reached.
    """
    remote = Remote(url)
    names = sorted(os.path.relpath(path, source) for path in source.rglob("*") if path.is_file())
    targets = {name: f"{remote.path}/{name}" for name in names}
    if last in replaced:
        # The old description must not be seen with new files.
        remote.delete([targets[last]])
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda name: remote.upload(source / name, targets[name]), set(names) - {last}))
    remote.upload(source / last, targets[last])
    remote.delete(f"{remote.path}/{name}" for name in sorted(set(replaced) - set(names)))


def _options_for(scheme: str) -> dict[str, Any]:
    """Return what a backend must be told: the one of S3 would keep all but ten requests waiting."""
    from fsspec.config import conf

    if _EXTRAS.get(scheme) != "s3":
        return {}
    own = {**conf.get("s3", {}), **conf.get("s3a", {})}.get("config_kwargs", {})
    return {"config_kwargs": {"max_pool_connections": CONNECTIONS, **own}}


def _info(system: Any, path: str) -> Mapping[str, Any] | None:
    try:
        about: Mapping[str, Any] = system.info(path)
    except FileNotFoundError:
        return None
    return about


def _as_file(path: str, about: Mapping[str, Any]) -> RemoteFile:
    size = about.get("size")
    told = next((key for key in (*_CONTENT_KEYS, *_TIME_KEYS) if about.get(key)), None)
    version = f"{about[told]}" if told else ""
    return RemoteFile(path, -1 if size is None else int(size), f"{version.strip(chr(34))} {size}")


def _refusal(name: str, error: Exception) -> StokerError:
    if isinstance(error, FileNotFoundError):
        return ArgumentError(f"there is no file or folder {name}")
    if isinstance(error, PermissionError):
        return ArgumentError(f"{name}: access denied ({_redact_first_line(error)}); check the credentials")
    return ArgumentError(f"{name}: {_redact_first_line(error)}")


def _redact_first_line(error: BaseException) -> str:
    return redact_text(first_line(error))[:300]
