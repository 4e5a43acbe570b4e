"""A folder for each class: find its files in one walk, with a state that changes when one of them does.

Everything that reads, counts or checks such a folder uses this walk. Folders inside a class folder belong to the class.
Names that begin with a dot and what macOS adds to archives (`__MACOSX`) are ignored. Links to folders inside a class
folder are not followed, since they may form a circle.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stoker.data.columns import DataWarning
from stoker.data.paths import IMAGES, explain_unreadable
from stoker.errors import ArgumentError
from stoker.units import alternatives, quantity

# Images of kinds that are not read, although their owner probably expects it.
_OTHER_IMAGES = (
    ".webp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".jfif", ".tga", ".ppm", ".pgm",
)  # fmt: skip


class ClassFile(NamedTuple):
    """A file of a class. The path is not a `Path`, as making one takes longer than everything else here."""

    path: str
    class_name: str
    size: int
    changed_ns: int


def read_folder_state(root: Path, files: list[ClassFile]) -> str:
    """Return a hash that changes when one of the files does, however the folder's path is written."""
    # A hash, not a list: a long list makes Python's garbage collector walk all objects of TensorFlow again and again.
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        digest.update(os.fsencode(f"{file.path.removeprefix(str(root))}\0{file.size}\0{file.changed_ns}\0"))
    return digest.hexdigest()


def _is_hidden(name: str) -> bool:
    """Return whether a name is not part of the data: `.DS_Store`, `._photo.png`, `.thumbnails`, `__MACOSX`."""
    return name.startswith(".") or name == "__MACOSX"


def class_folders(root: Path) -> list[Path]:
    """Return the folders of the classes, in alphabetical order; there may be none.

    Raises:
        ArgumentError: `root` is not a folder, it cannot be read, or the name of a class is not text.
    """
    if not root.is_dir():
        what = f"{root} is a file" if root.is_file() else f"there is no folder {root}"
        raise ArgumentError(f"{what}: give a folder with a folder for each class")
    try:
        folders = sorted(path for path in root.iterdir() if not _is_hidden(path.name) and path.is_dir())
    except OSError as error:
        raise explain_unreadable(root, error) from None
    for folder in folders:
        if not folder.name.isascii() and not is_text(folder.name):
            raise ArgumentError(
                f"the folder {os.fsencode(folder.name)!r} in {root} names its class in bytes that are not UTF-8: "
                "rename it"
            )
    return folders


def list_names(root: Path) -> list[str]:
    """List the names of all files in the folders of the classes."""
    return [entry.name for folder in class_folders(root) for entry in _entries(str(folder))]


def class_files(root: Path, suffixes: tuple[str, ...]) -> list[ClassFile]:
    """Return the files of each class, in alphabetical order.

    A `DataWarning` names images of kinds that are not read, once.

    Raises:
        ArgumentError: there is no such folder, it has no folders, one of them is empty, or a file cannot be reached.
    """
    folders = class_folders(root)
    if not folders:
        raise ArgumentError(f"the folder {root} holds no folder: make one for each class")
    found: list[ClassFile] = []
    left_out: Counter[str] = Counter()
    for folder in folders:
        files, others = _files_of(folder, suffixes)
        if not files:
            remedy = f", only {_count_kinds(others)}: {_CONVERT}" if others else ": fill or remove it"
            raise ArgumentError(
                f"the folder {folder} holds no file that ends in {alternatives(suffixes)}{remedy}"
            )
        # Sort folder by folder: NUL sorts before every character.
        found += sorted(files, key=lambda file: file.path.replace(os.sep, "\0"))
        left_out += others
    if left_out:
        _warn_once(
            f"{_count_kinds(left_out)} in {root} {'is' if left_out.total() == 1 else 'are'} left out: {_CONVERT}"
        )
    return found


def _files_of(folder: Path, suffixes: tuple[str, ...]) -> tuple[list[ClassFile], Counter[str]]:
    """Return the files of a class, and how many images there are of each kind that is not read."""
    files: list[ClassFile] = []
    others: Counter[str] = Counter()
    for entry in _entries(str(folder)):
        name = entry.name.lower()
        if name.endswith(suffixes):
            files += _list_if_file(entry, folder.name)
        elif suffixes == IMAGES and name.endswith(_OTHER_IMAGES):
            others[os.path.splitext(name)[1]] += 1
    return files, others


_CONVERT = "convert to PNG or JPEG"


def _count_kinds(kinds: Counter[str]) -> str:
    """Say how many files there are of each kind."""
    return " and ".join(quantity(count, f"{kind} file") for kind, count in sorted(kinds.items()))


@functools.cache
def _warn_once(message: str) -> None:
    """Warn, but only once, however often a program reads the folder."""
    warnings.warn(message, DataWarning, stacklevel=4)


def is_text(name: str) -> bool:
    """Return whether a path is valid text; POSIX allows any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield all entries below a folder except folders and hidden ones."""
    try:
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if not _is_hidden(entry.name)]
    except OSError as error:
        raise explain_unreadable(folder, error) from None
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path)
        else:
            yield entry


def _list_if_file(entry: os.DirEntry[str], class_name: str) -> list[ClassFile]:
    """Return the file in a list, empty if the entry is not a file: a link may lead to a folder."""
    try:
        about = entry.stat()
    except OSError as error:
        if entry.is_symlink():
            raise ArgumentError(f"{entry.path} is a broken link: repair or remove it") from None
        raise explain_unreadable(entry.path, error) from None
    if not stat.S_ISREG(about.st_mode):
        return []
    return [ClassFile(entry.path, class_name, about.st_size, about.st_mtime_ns)]
