"""Serve an editor: findings of `stoker check`, with their measured prices, while you type.

    stoker lsp

An editor starts this and talks to it over stdin and stdout (the Language Server Protocol). docs/editors.md shows how to
set up VS Code, Neovim and others.

Needs `pip install 'stoker[lsp]'`.
"""

from __future__ import annotations

import argparse
import os
import sys

from stoker.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker lsp`."""
    parser.add_argument("--stdio", action="store_true", help="talk over stdin and stdout, as it always does")


def run(args: argparse.Namespace) -> int:
    """Serve until the editor ends the session."""
    try:
        from stoker.doctor.lsp.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise UsageError(f"stoker lsp needs {error.name}: pip install 'stoker[lsp]'") from None
    # The server closes the stream to which it writes, but `stoker` still flushes its own output at the end.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        make_server().start_io(stdout=output)
    return 0
