"""A folder for each class: its files, found in one walk, with what changes when one of them does.

Everything that reads, counts or checks such a folder goes by this walk: folders in a class' folder belong to the class;
names that begin with a dot and what macOS adds to archives (`__MACOSX`) are passed over; links to folders inside a
class' folder are not followed, since they may lead in circles.
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
from stoker.data.paths import IMAGES, unreadable
from stoker.errors import ArgumentError
from stoker.units import counted

# Images of kinds that are not read: whoever put them there thinks they are.
_OTHER_IMAGES = (
    ".webp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".jfif", ".tga", ".ppm", ".pgm",
)  # fmt: skip


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


def _is_hidden(name: str) -> bool:
    """Whether nobody means this file or folder: `.DS_Store`, `._photo.png`, `.thumbnails`, `__MACOSX`."""
    return name.startswith(".") or name == "__MACOSX"


def class_folders(root: Path) -> list[Path]:
    """The folders of the classes, in alphabetical order; none where there are none.

    Raises:
        ArgumentError: this is no folder, it cannot be read, or the name of a class is no text.
    """
    if not root.is_dir():
        what = f"{root} is a file" if root.is_file() else f"there is no folder {root}"
        raise ArgumentError(f"{what}: give a folder with a folder for each class")
    try:
        folders = sorted(path for path in root.iterdir() if not _is_hidden(path.name) and path.is_dir())
    except OSError as error:
        raise unreadable(root, error) from None
    for folder in folders:
        if not folder.name.isascii() and not is_text(folder.name):
            raise ArgumentError(
                f"the folder {os.fsencode(folder.name)!r} in {root} names its class in bytes that are not UTF-8: "
                "rename it"
            )
    return folders


def names_below(root: Path) -> list[str]:
    """What all files in the folders of the classes are called."""
    return [entry.name for folder in class_folders(root) for entry in _entries(str(folder))]


def class_files(root: Path, suffixes: tuple[str, ...]) -> list[ClassFile]:
    """The files below each class' folder, in alphabetical order.

    Images of kinds that are not read are told of once, with a `DataWarning`.

    Raises:
        ArgumentError: there is no such folder, it has no folders, one of them is empty, or a file cannot be reached.
    """
    folders = class_folders(root)
    if not folders:
        raise ArgumentError(f"the folder {root} holds no folder: there must be one for each class")
    found: list[ClassFile] = []
    left_out: Counter[str] = Counter()
    for folder in folders:
        files, others = _files_of(folder, suffixes)
        if not files:
            remedy = f", only {_spoken(others)}: {_CONVERT}" if others else ": fill or remove it"
            raise ArgumentError(
                f"the folder {folder} holds no file that ends in {' or '.join(suffixes)}{remedy}"
            )
        # Folder by folder: no character comes before NUL.
        found += sorted(files, key=lambda file: file.path.replace(os.sep, "\0"))
        left_out += others
    if left_out:
        _tell(
            f"{_spoken(left_out)} in {root} {'is' if left_out.total() == 1 else 'are'} left out: {_CONVERT}"
        )
    return found


def _files_of(folder: Path, suffixes: tuple[str, ...]) -> tuple[list[ClassFile], Counter[str]]:
    """The files of a class, and how many images of which kinds are there that are not read."""
    files: list[ClassFile] = []
    others: Counter[str] = Counter()
    for entry in _entries(str(folder)):
        name = entry.name.lower()
        if name.endswith(suffixes):
            files += _reached(entry, folder.name)
        elif suffixes == IMAGES and name.endswith(_OTHER_IMAGES):
            others[os.path.splitext(name)[1]] += 1
    return files, others


_CONVERT = "convert to PNG or JPEG"


def _spoken(kinds: Counter[str]) -> str:
    """How many files of which kind."""
    return " and ".join(counted(count, f"{kind} file") for kind, count in sorted(kinds.items()))


@functools.cache
def _tell(message: str) -> None:
    """Once, however often a program reads the folder."""
    warnings.warn(message, DataWarning, stacklevel=4)


def is_text(name: str) -> bool:
    """Whether a path can be written down; those of POSIX may hold any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """All that is below a folder, but for folders and what is hidden."""
    try:
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if not _is_hidden(entry.name)]
    except OSError as error:
        raise unreadable(folder, error) from None
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path)
        else:
            yield entry


def _reached(entry: os.DirEntry[str], class_name: str) -> list[ClassFile]:
    """The file, where this is one: a link may lead to a folder, or nowhere."""
    try:
        about = entry.stat()
    except OSError as error:
        if entry.is_symlink():
            raise ArgumentError(f"{entry.path} is a broken link: repair or remove it") from None
        raise unreadable(entry.path, error) from None
    if not stat.S_ISREG(about.st_mode):
        return []
    return [ClassFile(entry.path, class_name, about.st_size, about.st_mtime_ns)]
