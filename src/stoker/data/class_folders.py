"""A folder for each class: its files, found in one walk, with what changes when one of them does."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stoker.errors import ArgumentError


class ClassFile(NamedTuple):
    """A file of a class. (Not a `Path`: making one takes longer than everything else here.)"""

    path: str
    class_name: str
    size: int
    changed_ns: int


def state_of(root: Path, files: list[ClassFile]) -> str:
    """What changes when one of the files does, however the folder was spelled."""
    # A digest: lists of many files have Python look for cycles in all that TensorFlow has made, again and again.
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        digest.update(os.fsencode(f"{file.path.removeprefix(str(root))}\0{file.size}\0{file.changed_ns}\0"))
    return digest.hexdigest()


def class_files(root: Path, suffixes: tuple[str, ...]) -> list[ClassFile]:
    """The files below each class' folder, in alphabetical order.

    Raises:
        ArgumentError: there is no such folder, it has no folders, or one of them is empty.
    """
    if not root.is_dir():
        raise ArgumentError(f"there is no folder {root}")
    classes = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not classes:
        raise ArgumentError(f"the folder {root} holds no folder: there must be one for each class")
    found: list[ClassFile] = []
    for folder in classes:
        files = [
            ClassFile(entry.path, folder.name, entry.stat().st_size, entry.stat().st_mtime_ns)
            for entry in _entries(str(folder))
            if entry.name.lower().endswith(suffixes)
        ]
        if not files:
            raise ArgumentError(f"the folder {folder} holds no file that ends in {' or '.join(suffixes)}")
        # Folder by folder: no character comes before NUL.
        found += sorted(files, key=lambda file: file.path.replace(os.sep, "\0"))
    return found


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)
            elif entry.is_file():
                yield entry
