"""The errors that Stoker shows to people: one line that says what was wrong and what to do, never a traceback."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable
from typing import Any


class StokerError(Exception):
    """Base of all errors for the user. The command line prints the message and exits with `exit_code`."""

    exit_code = 2


class UsageError(StokerError):
    """The request itself is wrong: no such file, an option that makes no sense."""


class RecordError(StokerError):
    """A saved record is missing, damaged, or of a schema that this version cannot read."""


class ArgumentError(StokerError, ValueError):
    """A call of the Python API got a value that it cannot use. Code that expects `ValueError` catches it."""


class UnavailableError(ArgumentError):
    """An argument is valid, but what it names cannot be used now: a port is taken, a server does not answer.

    Unlike other `ArgumentError`s, this one may be gone after a restart.
    """


class CheckpointError(StokerError, RuntimeError):
    """A checkpoint could not be written, or belongs to another model, run or data pipeline."""


def first_line(said: BaseException | str) -> str:
    """Return the first line of a text or an error's message; if the message is empty, the name of the error's class."""
    lines = str(said).strip().splitlines()
    if lines:
        return lines[0].rstrip()
    return type(said).__name__ if isinstance(said, BaseException) else ""


def describe_error(error: BaseException) -> str:
    """Return an error's class and the first line of its message, if it has one."""
    line = first_line(str(error))
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def find_nearest(word: str, known: Iterable[str], least_alike: float = 0.6) -> str | None:
    """Return the known word most similar to this one, ignoring case; None if none is similar."""
    import difflib

    by_small_letters: dict[str, str] = {}
    for name in known:
        by_small_letters.setdefault(name.lower(), name)
    near = difflib.get_close_matches(word.lower(), by_small_letters, 1, least_alike)
    return by_small_letters[near[0]] if near else None


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the nearest known word, if any is near."""
    near = find_nearest(word, known)
    return f": did you mean {near!r}?" if near else ""


# The extra that installs each package.
_EXTRAS = {
    "tensorflow": "cpu",
    "keras": "cpu",
    "numpy": "cpu",
    "pyarrow": "data",
    "sklearn": "recipes",
    "uvicorn": "serve",
    "orjson": "serve",
    "grpc": "grpc",
    "starlette": "ui",
    "psycopg": "postgres",
    "sqlalchemy": "mlflow",
    "cryptography": "sign",
}


def name_extra(what: str, error: ModuleNotFoundError) -> StokerError | None:
    """Return the line for a package that is not installed; None if none of Stoker's extras would install it."""
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return None
    return StokerError(f"{what} needs {package}: install it with pip install 'stoker[{extra}]'")


def whole_number(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Check a whole number, Python's or NumPy's, and return it as an `int`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}={value!r} must be a whole number") from None
    if least is not None and number < least:
        raise ArgumentError(f"{name}={value!r} must be at least {least}")
    if most is not None and number > most:
        raise ArgumentError(f"{name}={value!r} must be at most {most}")
    return number


# A `Path` made from an address has one slash less. Then only these count as schemes, since a directory may end in a
# colon.
_SCHEMES = "s3|s3a|s3n|gs|gcs|hdfs|az|abfs|abfss|adl|wasb|wasbs|oss|file|http|https|ftp|sftp|ssh|dbfs"
_ADDRESS = re.compile(rf"([a-z][a-z0-9+.-]*)://|({_SCHEMES}):/", re.IGNORECASE)


def check_local_path(path: Any) -> None:
    """Refuse the address of a bucket or a server in place of a path: `s3://bucket` would become a folder named `s3:`.

    Args:
        path: the path of a file or a directory. Anything but text and paths passes, for the caller to refuse.

    Raises:
        ArgumentError: the path is an address.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    found = _ADDRESS.match(os.fsdecode(text))
    if found is None:
        return
    scheme = found[1] or found[2]
    if scheme.lower() == "file":
        raise ArgumentError(f"{text}: give the path alone, without file://")
    raise ArgumentError(
        f"{text}: {scheme}:// is not supported here. Give a path on this machine: mount the storage, or copy the files."
    )
