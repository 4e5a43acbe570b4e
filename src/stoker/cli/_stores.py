"""`--store`: which store a command reads."""

from __future__ import annotations

import argparse

from stoker.errors import UsageError
from stoker.tracking.store import address


def add_store(parser: argparse.ArgumentParser) -> None:
    """`--store`, with every verb that reads one."""
    # An action's own default must not undo what was said before the action.
    parser.add_argument(
        "--store",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="the store (STOKER_STORE, [tool.stoker], .stoker/stoker.db)",
    )


def find_store(args: argparse.Namespace) -> address.Address:
    """The store to read: that of `--store`, which must exist, or the usual one, which may still be empty.

    Raises:
        UsageError: the store is switched off, invalid or missing.
    """
    given = getattr(args, "store", None)
    found = address.require(given)
    if given and found.path is not None and not found.path.exists():
        raise UsageError(f"--store {given}: there is no file {found.path}")
    return found
