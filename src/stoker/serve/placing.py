"""Directories that are written beside their place and renamed into it, so that nobody sees an incomplete one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stoker import files


@contextmanager
def make_beside(target: Path) -> Iterator[Path]:
    """A new directory that replaces `target` when the block ends well; otherwise nothing is left of it."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    beside.parent.mkdir(parents=True, exist_ok=True)
    try:
        beside.mkdir()
        yield beside
        _put_in_place(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _put_in_place(beside: Path, target: Path) -> None:
    """Rename it into place, and only then remove what was there."""
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
