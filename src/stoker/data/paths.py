"""Turn paths, URLs, globs and directories into a sorted list of files."""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec, TypeVar

from stoker import storage
from stoker.errors import ArgumentError, check_local_path
from stoker.units import alternatives

# The endings of each reader's files.
CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
JSONL = (".jsonl", ".ndjson", ".jsonl.gz", ".json")
TEXTS = (".txt",)
IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp")
RECORDS = (".tfrecord", ".tfrecords", ".tfrec", ".tfrecord.gz", ".tfrecords.gz")
PACKED = (".gz", ".bz2", ".zst")
TARS = (".tar", ".tar.gz", ".tgz")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
# The files that a reader is fetching while it parses them; None if all files must have arrived first.
_begun: ContextVar[list[storage.Fetch] | None] = ContextVar("begun", default=None)


def parses_as_files_arrive(read: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a reader that opens its files through `storage.arriving`; `files` names them before they are fetched."""

    @functools.wraps(read)
    def read_early(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        begun: list[storage.Fetch] = []
        before = _begun.set(begun)
        try:
            return read(*args, **kwargs)
        except ArgumentError:
            # If the files have changed meanwhile, their two versions may not fit together, so the error does not count.
            if not storage.has_changed(begun):
                raise
        finally:
            _begun.reset(before)
        # All files are of one version, and have arrived before the first is opened.
        return read(*args, **kwargs)

    return read_early


def files(paths: Paths, suffixes: tuple[str, ...], cache_bytes: int | None = None) -> list[Path]:
    """Return the files that the paths name, in an order that does not depend on the file system.

    Args:
        paths: a path, a glob, a directory (its files with one of the suffixes), or several of these; each may be a URL.
        suffixes: which files of a directory count, such as `(".csv", ".csv.gz")`.
        cache_bytes: the most that copies of files elsewhere may take on this machine.

    Raises:
        ArgumentError: there are no such files.
    """
    if isinstance(paths, str | os.PathLike):
        return _find(os.fspath(paths), suffixes, cache_bytes)
    try:
        given = [os.fspath(one) for one in paths]
    except TypeError:
        raise ArgumentError(f"give a path, a glob or a list of these, not {type(paths).__name__}") from None
    if not given:
        raise ArgumentError("the list of paths is empty: give at least one")
    return [path for one in given for path in _find(one, suffixes, cache_bytes)]


def name_files(files: list[Path]) -> str:
    """Name the files in a message: the first, and how many more."""
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def explain_unreadable(path: str | Path, error: OSError) -> ArgumentError:
    """Return the error for a file or folder that cannot be read or unpacked, such as a file that was cut off."""
    why = error.strerror or (str(error).splitlines() or ["it is damaged"])[0]
    packed = str(path).lower().endswith(PACKED)
    remedy = (
        "it is damaged or incomplete; create or copy it again" if packed else "make it readable, or remove it"
    )
    return ArgumentError(f"{path} cannot be {'unpacked' if packed else 'read'} ({why}): {remedy}")


def local_tree(
    path: str | os.PathLike[str], suffixes: tuple[str, ...], cache_bytes: int | None = None
) -> Path:
    """Return the path of a file, or of a directory with its folders; for a URL, the path of its local copy.

    Args:
        path: the path of the directory or the file.
        suffixes: the endings of the files that are read.
        cache_bytes: the most that copies of files elsewhere may take on this machine.

    Raises:
        ArgumentError: nothing matches the URL, or it cannot be reached.
    """
    text = os.fspath(path)
    if storage.is_url(text):
        return Path(storage.local_path(text, suffixes, cache_bytes=cache_bytes))
    check_local_path(text)
    return Path(text).expanduser()


def _find(text: str, suffixes: tuple[str, ...], cache_bytes: int | None) -> list[Path]:
    if not storage.is_url(text):
        check_local_path(text)
        return _find_local(text, suffixes)
    begun = _begun.get()
    if begun is None or "**" in text:
        return _find_local(storage.local_path(text, suffixes, deep=False, cache_bytes=cache_bytes), suffixes)
    fetch, paths = storage.begin_copy(text, suffixes, cache_bytes)
    begun.append(fetch)
    return paths


def _find_local(text: str, suffixes: tuple[str, ...]) -> list[Path]:
    path = Path(text).expanduser()
    if path.is_file():
        return [path]
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if p.is_file() and p.name.lower().endswith(suffixes))
        if not inside:
            raise ArgumentError(f"the folder {text} holds no file that ends in {alternatives(suffixes)}")
        return inside
    matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    matches = [p for p in matches if p.is_file()]
    if matches:
        return matches
    if glob.has_magic(text):
        raise ArgumentError(f"no file matches {text}")
    raise ArgumentError(f"there is no file or folder {text}")
