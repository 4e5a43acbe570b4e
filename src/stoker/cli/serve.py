"""Serve bundles over HTTP: TensorFlow Serving's REST API, the Open Inference Protocol, a page to try them.

    stoker serve bundle/
    stoker serve prices=bundle/ pets=versions/ --port 8501 --workers 4
    curl -d '{"instances": [[1.0, 2.0]]}' localhost:8501/v1/models/model:predict

A model is NAME=PATH, or PATH alone, whose name is then "model". PATH is a bundle, a directory with bundles in
directories named by numbers, or a run of `stoker train`, such as runs/latest. A bundle renamed into place replaces the
old one without a failed request. SIGTERM finishes the requests in progress, then exits. Limits apply to each worker.
Exit code: 0; 2 for a bad request or a bundle that does not work.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stoker.chatter import quiet_tensorflow
from stoker.cli import _tokens
from stoker.cli._options import add_store, given_store, local_path, named_path
from stoker.cli._trust import add_trust, trust_of
from stoker.errors import UsageError
from stoker.logs import LOGGER, use_handler
from stoker.loopback import NAMES, is_loopback, name_of
from stoker.serve import bundle
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.server import sockets, supervising
from stoker.serve.server.log import ServerLog
from stoker.tracking.store import address

_IN_FLIGHT = 256 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker serve`."""
    parser.add_argument(
        "models",
        type=named_path,
        nargs="+",
        metavar="[NAME=]PATH",
        help="a bundle, a directory of numbered ones, or a run of stoker train",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8501, help="the port (8501); 0 picks a free one")
    parser.add_argument(
        "--grpc-port", type=int, default=0, metavar="PORT", help="also serve gRPC there (off)"
    )
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (1)")
    _tokens.add_options(parser, "what clients must send as a bearer token")
    parser.add_argument(
        "--allowed-hosts",
        default="",
        metavar="NAMES",
        help="host names clients may use, separated by commas; '*' for any (a server without a token on a loopback "
        "address: 127.0.0.1, localhost and [::1]; else any)",
    )
    parser.add_argument(
        "--tls-cert", type=local_path, default="", metavar="FILE", help="a certificate, to serve HTTPS"
    )
    parser.add_argument("--tls-key", type=local_path, default="", metavar="FILE", help="its key")
    parser.add_argument(
        "--max-body", type=int, default=16 << 20, metavar="BYTES", help="the largest body (16 MiB)"
    )
    parser.add_argument(
        "--max-rows", type=int, default=10_000, metavar="N", help="the most rows in a request (10000)"
    )
    parser.add_argument(
        "--max-string", type=int, default=1 << 20, metavar="BYTES", help="the longest string (1 MiB)"
    )
    parser.add_argument(
        "--max-in-flight",
        type=int,
        metavar="BYTES",
        help="memory for the bodies of all unanswered requests (256 MiB, or twice --max-body if that is more)",
    )
    parser.add_argument(
        "--max-connections", type=int, default=1000, metavar="N", help="clients that may be connected (1000)"
    )
    parser.add_argument(
        "--body-timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="the longest a request may take to arrive (60)",
    )
    parser.add_argument(
        "--drain-delay",
        type=float,
        default=0.5,
        metavar="S",
        help="how long to accept connections after SIGTERM, while /readyz answers 503 (0.5)",
    )
    parser.add_argument(
        "--queue", type=int, default=8192, metavar="ROWS", help="the most rows in the queue (8192)"
    )
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="S", help="the longest wait for an answer (30)"
    )
    parser.add_argument(
        "--batch", type=int, default=256, metavar="ROWS", help="the most rows in one call (256)"
    )
    parser.add_argument(
        "--engine",
        default="",
        choices=["session", "threads", "function", "xla", "litert", "onnx"],
        help="what computes the answers (the fastest that reproduces the recorded ones)",
    )
    parser.add_argument(
        "--record",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="record this share of requests and report drift (0)",
    )
    parser.add_argument(
        "--ledger",
        action="store_true",
        help="account for every second of a request; shown at the end and at /ledger",
    )
    add_trust(parser)
    add_store(parser)
    parser.add_argument(
        "--access-log", action="store_true", help="log one line of JSON per request to stderr"
    )


def run(args: argparse.Namespace) -> int:
    """Check the request, listen, serve."""
    with use_handler(ServerLog()):
        return _run(args, LOGGER.info)


def _run(args: argparse.Namespace, say: Callable[[str], None]) -> int:
    models = dict(_named(word) for word in args.models)
    if len(models) != len(args.models):
        raise UsageError("two models have the same name: give NAME=PATH")
    _check(args)
    needed = {"uvicorn": "serve", "orjson": "serve", "tensorflow": "cpu"}
    for name, extra in (needed | ({"grpc": "grpc"} if args.grpc_port else {})).items():
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"stoker serve needs {name}: install it with pip install 'stoker[{extra}]'")
    token = _tokens.read_token(args, "STOKER_SERVE_TOKEN") or ""
    trust = trust_of(args)
    settings = ServerSettings(
        models,
        token=token,
        hosts=_hosts(args.allowed_hosts, args.host, token),
        connections=args.max_connections,
        held_bytes=args.max_in_flight,
        body_timeout=args.body_timeout,
        drain_delay=args.drain_delay,
        body_bytes=args.max_body,
        rows=args.max_rows,
        string_bytes=args.max_string,
        queue=args.queue,
        timeout=args.timeout,
        batch=args.batch,
        access_log=args.access_log,
        grpc=f"{_in_url(args.host)}:{args.grpc_port}" if args.grpc_port else "",
        engine=args.engine,
        ledger=args.ledger,
        record=args.record,
        allow_ops=trust.allow_ops,
        public_key=trust.public_key,
        tls_certificate=args.tls_cert,
        tls_key=args.tls_key,
    )
    store = address.find(given_store(args))
    if args.record and store is None:
        raise UsageError("--record needs a store: STOKER_STORE says off; give --store URL")
    sock = sockets.listen(args.host, args.port)
    shared = sockets.reserve(args.host, args.grpc_port) if args.grpc_port else None
    if shared is not None and args.workers == 1:
        shared.close()  # one process alone takes the address for itself, and shares it with nobody
    scheme = "https" if args.tls_cert else "http"
    host, port = sock.getsockname()[:2]
    say(f"serving {', '.join(models)} on {scheme}://{_in_url(host)}:{port}")
    if not token and not is_loopback(args.host):
        say(
            f"warning: anyone who can reach {args.host} can use these models: "
            "set STOKER_SERVE_TOKEN (or --token) to ask for a token"
        )
    from stoker.serve.plane import deployment  # needs orjson, an extra

    kept = deployment.begin_run(settings, store)
    url = "" if store is None else store.url or f"sqlite:///{store.path}"
    settings = replace(settings, run=kept.id, store=url)
    try:
        code = _serve(settings, sock, say, args.workers)
    except BaseException as error:
        deployment.end_run(kept, error)
        raise
    deployment.end_run(kept, code=code)
    return code


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _hosts(allowed: str, host: str, token: str) -> tuple[str, ...]:
    """The names a request may be sent to; none for any.

    A page that a browser on this machine shows can reach a loopback address under a name of its own (DNS rebinding),
    but does not know a token.
    """
    local = (*NAMES, _in_url(host).lower()) if is_loopback(host) else ()
    if not allowed:
        return () if token else local
    names = [name_of(one) for one in allowed.split(",") if one.strip()]
    return () if "*" in names else (*names, *local)


def _serve(settings: ServerSettings, sock: socket.socket, say: Callable[[str], None], workers: int) -> int:
    if workers > 1:
        return supervising.supervise(settings, sock, say, workers)
    with quiet_tensorflow():
        from stoker.serve.server.running import serve

    return serve(settings, sock, say)


def _named(word: str) -> tuple[str, str]:
    name, found, path = word.partition("=")
    if not found:
        name, path = "model", word
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise UsageError(f"{name!r} is not a valid model name: use letters, digits, '_', '-' and '.'")
    return name, str(bundle.locate(path))


def _check(args: argparse.Namespace) -> None:
    positive = (
        "workers", "max_body", "max_rows", "max_string", "max_connections", "body_timeout", "queue", "timeout", "batch",
    )  # fmt: skip
    for option in positive:
        if not getattr(args, option) > 0:
            raise UsageError(f"--{option.replace('_', '-')} {getattr(args, option)} must be more than 0")
    if not 0 <= args.drain_delay <= 600:
        raise UsageError(f"--drain-delay {args.drain_delay:g} must be between 0 and 600 seconds")
    if args.max_in_flight is None:
        args.max_in_flight = max(_IN_FLIGHT, 2 * args.max_body)
    if args.max_in_flight < args.max_body:
        raise UsageError(
            f"--max-in-flight {args.max_in_flight} must be at least --max-body, which is {args.max_body}"
        )
    if not 0 <= args.record <= 1:
        raise UsageError(f"--record {args.record} must be between 0 and 1")
    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("HTTPS needs both --tls-cert and --tls-key")
    for file in (args.tls_cert, args.tls_key):
        if file and not Path(file).is_file():
            raise UsageError(f"there is no file {file}")
