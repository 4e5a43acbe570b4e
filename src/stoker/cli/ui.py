"""Serve a page over the runs of the store, live.

    stoker ui
    stoker ui --store postgresql://user@host/database --port 8400

The page is served on this machine only. Anyone with the printed URL can open it, because the URL contains a random
token. The page is read-only; --write lets it delete runs. Set your own token with --token-file or STOKER_TOKEN.

Needs `pip install 'stoker[ui]'`.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import socket
import threading
from types import FrameType

from stoker.cli import _tokens
from stoker.cli._options import add_store, read_store
from stoker.errors import UsageError
from stoker.loopback import NAMES, is_loopback
from stoker.printing import print_answer
from stoker.tracking.store.queries import open_reader

_SHORTEST_TOKEN = 16


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker ui`."""
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="where to listen (any free port)")
    _tokens.add_options(parser, "the token, needed to listen beyond this machine")
    parser.add_argument("--write", action="store_true", help="let the page delete runs")
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    try:
        import uvicorn

        from stoker.tracking.ui.app import make_app
    except ImportError as error:
        raise UsageError(f"stoker ui needs {error.name}: install it with pip install 'stoker[ui]'") from None
    store = read_store(args)
    open_to_others = not is_loopback(args.host)
    given = _tokens.read_token(args)
    if open_to_others and not given:
        raise UsageError(f"--host {args.host} is open to other machines: set a token (--token-file)")
    if not 0 <= args.port <= 65535:
        raise UsageError(f"--port {args.port} must be between 0 and 65535")
    if given is not None and len(given) < _SHORTEST_TOKEN:
        raise UsageError(f"the token must have at least {_SHORTEST_TOKEN} characters; it has {len(given)}")
    with open_reader(store):
        # Opening the store creates or migrates it, and writes batches that waited in a spool.
        pass
    listening = _listen(args.host, args.port)
    port = listening.getsockname()[1]
    token = given or secrets.token_urlsafe(24)
    names = () if open_to_others else NAMES
    hosts = frozenset(f"{name}:{port}" for name in names)
    shown = f"[{args.host}]" if ":" in args.host else args.host
    # A token of the user's own is not printed again: what is printed ends up in logs.
    query = "?token=...  (the token you gave)" if given else f"?token={token}"
    print_answer(f"{store}\nhttp://{shown}:{port}/{query}")
    if open_to_others:
        print_answer("other machines can reach this page; anyone with the token can read every run")
    ending = threading.Event()

    class PageServer(uvicorn.Server):
        """Ends the event streams before it shuts down, as an open page would listen for ever."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            ending.set()
            super().handle_exit(sig, frame)

    app = make_app(store, token, hosts, ending, write=args.write)
    settings = uvicorn.Config(
        app, log_level="error", lifespan="off", server_header=False, timeout_graceful_shutdown=5
    )
    with contextlib.suppress(KeyboardInterrupt):
        PageServer(settings).run([listening])
    return 0


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, number)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        # Clients that are quick with the URL wait in line.
        made.listen(128)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port} ({error.strerror})") from None
    return made
