"""The errors Stoker shows to people: one line that says what was wrong and what to do, never a traceback."""

from __future__ import annotations

import operator
from typing import Any


class StokerError(Exception):
    """Base of all errors meant for the user: the command line prints the message, exits with `exit_code`."""

    exit_code = 2


class UsageError(StokerError):
    """The request itself is wrong: no such file, an option that makes no sense."""


class RecordError(StokerError):
    """A saved record is missing, damaged, or of a schema this version cannot read."""


class ArgumentError(StokerError, ValueError):
    """A call of the Python API got a value it cannot work with; code that expects `ValueError` catches it."""


class CheckpointError(StokerError, RuntimeError):
    """A checkpoint could not be written, or belongs to another model, run or data pipeline."""


# Which extra brings a package.
_EXTRAS = {
    "tensorflow": "cpu",
    "keras": "cpu",
    "pyarrow": "data",
    "sklearn": "recipes",
    "uvicorn": "serve",
    "orjson": "serve",
    "grpc": "grpc",
    "starlette": "ui",
    "psycopg": "postgres",
    "cryptography": "sign",
}


def name_extra(what: str, error: ModuleNotFoundError) -> StokerError | None:
    """The line for a package that is not installed; None if no extra of Stoker's would bring it."""
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return None
    return StokerError(f"{what} needs {package}: install it with pip install 'stoker[{extra}]'")


def whole_number(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """A number of something; NumPy's are as good as Python's."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}={value!r} must be a whole number") from None
    if least is not None and number < least:
        raise ArgumentError(f"{name}={value!r} must be at least {least}")
    if most is not None and number > most:
        raise ArgumentError(f"{name}={value!r} must be at most {most}")
    return number
