"""Reword errors and warnings of the Python API for a command: `sep=';'` becomes `--sep ';'`."""

from __future__ import annotations

import argparse
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker.errors import ArgumentError, UsageError

# Errors name the argument that gave a column; some arguments have other names than the command's options.
_COLUMNS = {
    "label": "target",
    "time": "time_column",
    "group": "group",
    "column": "column",
    "columns": "columns",
    "types": "types",
    "exclude": "exclude",
}
# A match inside a path does not count, such as year=2026/part.csv.
_ARGUMENT = re.compile(r"""(?<![^\s(])(\w+)=('[^']*'|"[^"]*"|\[\.\.\.\]|-?[\w.]+)(?=[\s,:;)]|$)""")
_QUOTED = r"'([^']*)'"
_LIST = re.compile(r"missing=\[('[^\]]*')\]")
_ASKED_BY = re.compile(r"(\w+)( or \w+)?: (there is no column|.* holds text|.* different values)")
_TYPES = re.compile(
    r"read (?:it|the column) with types=\{(?P<quote>['\"])(?P<column>.*?)(?P=quote): '(?P<kind>\w+)'\}.*"
)


@contextmanager
def respell_errors(args: argparse.Namespace) -> Iterator[None]:
    """Report a problem with an argument under the name of the command's option.

    Raises:
        UsageError: the block raised an `ArgumentError`.
    """
    try:
        yield
    except ArgumentError as error:
        raise UsageError(respell(str(error), args)) from None


@contextmanager
def print_warnings(args: argparse.Namespace, printer: Callable[[str], None]) -> Iterator[None]:
    """Print warnings in the words of the command, without the line of code, which means nothing to its users."""

    def show(message: Any, *_place: Any, **_options: Any) -> None:
        printer(respell(str(message), args))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def respell(message: str, args: argparse.Namespace) -> str:
    """Return the message with `--option value` for every `argument=value` for which the command has an option."""
    options = vars(args)

    def spell(found: re.Match[str]) -> str:
        name, value = found.groups()
        name = "target" if name == "label" else name
        if name not in options:
            return found.group()
        return _option(name) if value == "[...]" else f"{_option(name)} {value}"

    def advise_on_types(found: re.Match[str]) -> str:
        if "types" in options:
            kind = f"{found['column']}={found['kind']}"
            return f"read it with --types {shlex.quote(kind)}"
        # No option gives the kind of a column, and the target cannot be left out.
        if "columns" not in options or found["column"] == options.get("target"):
            return "leave those rows out"
        return "leave the column out (--columns)"

    if "missing" in options:
        # A list of texts is one argument, separated by commas.
        message = _LIST.sub(lambda found: f"missing='{','.join(re.findall(_QUOTED, found[1]))}'", message)
    message = _ARGUMENT.sub(spell, _TYPES.sub(advise_on_types, message))
    if not _ASKED_BY.match(message):
        return message
    first, _, rest = message.partition(": ")
    named = [_COLUMNS.get(one, "") for one in first.split(" or ")]
    return f"{' or '.join(map(_option, named))}: {rest}" if all(one in options for one in named) else message


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
