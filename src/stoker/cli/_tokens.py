"""The token of a server: from a file or the environment; also from the command line, where `ps` shows it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from stoker.cli._options import local_path
from stoker.errors import UsageError

VARIABLE = "STOKER_TOKEN"
_MOST_BYTES = 4096


def add_options(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add `--token` and `--token-file`."""
    parser.add_argument(
        "--token-file",
        type=local_path,
        metavar="FILE",
        help=f"a file with {purpose}; or {VARIABLE} in the environment",
    )
    parser.add_argument(
        "--token", metavar="TEXT", help="the token itself; other users of this machine can see it in `ps`"
    )


def read_token(args: argparse.Namespace, *variables: str) -> str | None:
    """Return the token from --token, --token-file, STOKER_TOKEN or the other variables, in this order; else None.

    Raises:
        UsageError: the file cannot be read or holds no token, or both options were given.
    """
    if args.token is not None and args.token_file is not None:
        raise UsageError("--token and --token-file cannot be combined: give one")
    if args.token is not None:
        return str(args.token)
    if args.token_file is not None:
        return _read_file(Path(args.token_file))
    given = (os.environ.get(name) for name in (VARIABLE, *variables))
    return next((value for value in given if value), None)


def _read_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"cannot read --token-file {path}: {reason}") from None
    if not text or len(text) > _MOST_BYTES or len(text.split()) > 1:
        raise UsageError(f"--token-file {path} must hold one token, on one line")
    return text
