"""Find the files to check and read them: Python files, notebooks, directories, standard input."""

from __future__ import annotations

import io
import os
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from stoker.doctor.check.source.module import SourceError, SourceModule, make_module
from stoker.doctor.check.source.notebook import read_cells
from stoker.errors import UsageError

STDIN = "-"
_SUFFIXES = (".py", ".ipynb", ".pyw")
# Directories that do not hold the project's own source.
_SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "build", "dist", "site-packages"})


def discover(paths: Iterable[str]) -> list[str]:
    """Return the files that these paths name, each once and in order. Directories are searched.

    Raises:
        UsageError: a path does not exist.
    """
    found: dict[str, None] = {}
    for path in paths:
        if path == STDIN or os.path.isfile(path):
            found[path] = None
        elif os.path.isdir(path):
            found.update(dict.fromkeys(_list_under(path)))
        else:
            raise UsageError(f"no such file or directory: {path}")
    return list(found)


def _list_under(top: str) -> Iterator[str]:
    for directory, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in _SKIPPED)
        for name in sorted(names):
            if name.endswith(_SUFFIXES):
                yield os.path.join(directory, name)


def load(path: str, data: bytes | None = None) -> SourceModule:
    """Read a file, unless `data` is its content. It is parsed when its tree is first used.

    Raises:
        SourceError: the file cannot be read or decoded, or is not a notebook.
    """
    if data is None and path == STDIN:
        data = sys.stdin.buffer.read()
    text = read_text(path) if data is None else decode(path, data)
    if path.endswith(".ipynb"):
        joined, cells = read_cells(path, text)
        return make_module(path, joined, cells)
    return make_module(path, text)


def read_text(path: str) -> str:
    """Return the text of a Python file, decoded with the encoding it declares.

    Raises:
        SourceError: the file cannot be read or decoded.
    """
    try:
        return decode(path, Path(path).read_bytes())
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error


def decode(path: str, data: bytes) -> str:
    """Decode a Python file's bytes.

    Raises:
        SourceError: the bytes are not text in the declared encoding.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            return data.decode(encoding)
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            raise SourceError(f"{path}:1:1: is not text: {error}") from error


def shorten_path(path: str) -> str:
    """Return a path for people to read: relative if it is below the working directory."""
    if path == STDIN:
        return path
    absolute = os.path.abspath(path)
    here = os.getcwd()
    return os.path.relpath(absolute, here) if absolute.startswith(here + os.sep) else absolute


def project_root(start: str) -> Path:
    """Return the nearest directory, from `start` upwards, with a pyproject.toml or a repository; else `start`."""
    here = Path(start).resolve()
    for directory in (here, *here.parents):
        if (directory / "pyproject.toml").is_file() or (directory / ".git").exists():
            return directory
    return here
