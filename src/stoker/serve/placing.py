"""Write directories beside their final place and rename them into it, so that nobody sees an incomplete one."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stoker import files, storage
from stoker.errors import ArgumentError, check_local_path
from stoker.serve.bundle import DESCRIPTION


@contextmanager
def place_bundle(path: str | os.PathLike[str], overwrite: bool) -> Iterator[Path]:
    """Yield where to write a bundle: the path, or for a URL a temporary directory, uploaded if the block succeeds.

    Raises:
        ArgumentError: a bundle exists already, or the path or URL cannot be used.
    """
    if not storage.is_url(path):
        check_local_path(path)
        yield Path(path)
        return
    url = os.fspath(path).rstrip("/")
    replaced = _find_replaced(url, overwrite)
    with tempfile.TemporaryDirectory(prefix="stoker-bundle-") as made:
        target = Path(made) / "bundle"
        yield target
        storage.put_tree(target, url, last=DESCRIPTION, replaced=replaced)


def _find_replaced(url: str, overwrite: bool) -> set[str]:
    """Return the files of the bundle that a new one replaces; anything else below the URL stays."""
    names = storage.list_names(url)
    if not names:
        return set()
    if DESCRIPTION not in names:
        raise ArgumentError(f"{storage.show_url(url)} already exists and is not a bundle; choose another URL")
    if not overwrite:
        raise ArgumentError(f"{storage.show_url(url)} exists; overwrite=True (--force) replaces it")
    try:
        known = json.loads(storage.read_bytes(f"{url}/{DESCRIPTION}"))["files"]
    except (ValueError, KeyError, TypeError):
        known = {}
    return names & {DESCRIPTION, *known}


@contextmanager
def make_beside(target: Path) -> Iterator[Path]:
    """Yield a new directory that replaces `target` if the block succeeds; otherwise nothing of it remains."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    beside.parent.mkdir(parents=True, exist_ok=True)
    try:
        beside.mkdir()
        yield beside
        _put_in_place(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _put_in_place(beside: Path, target: Path) -> None:
    """Rename the new directory into place, and only then remove the old one."""
    for file in beside.rglob("*"):
        if file.is_file():
            with open(file, "rb") as stream:
                os.fsync(stream.fileno())
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    if target.exists():
        os.rename(target, old)
    try:
        os.rename(beside, target)
    except OSError:
        if old.exists():
            os.rename(old, target)
        raise
    files.sync_directory(target.parent)
    shutil.rmtree(old, ignore_errors=True)
