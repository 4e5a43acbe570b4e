"""Serve bundles and SavedModels over HTTP and gRPC: TensorFlow Serving's API, the Open Inference Protocol, a page.

    stoker serve bundle/
    stoker serve path/to/saved_model --grpc-port 8500
    stoker serve prices=bundle/ pets=versions/ --port 8501 --workers 4
    curl -d '{"instances": [[1.0, 2.0]]}' localhost:8501/v1/models/model:predict

A model is NAME=PATH, or PATH alone, whose name is then "model". PATH is a bundle, a SavedModel, a directory with those
in directories named by numbers, or a run of `stoker train`, such as runs/latest. A model renamed into place replaces
the old one without a failed request. SIGTERM finishes the requests in progress, then exits. Limits apply to each
worker. `tensorflow_model_server` is the same server with TensorFlow Serving's options.
Exit code: 0; 2 for a bad request or a bundle that does not work.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from stoker import storage
from stoker.chatter import quiet_tensorflow
from stoker.cli import _tokens
from stoker.cli._options import add_store, local_path, parse_named_path, read_store_option
from stoker.cli._rollout import add_rollout, read_rollout
from stoker.cli._trust import add_trust, trust_of
from stoker.errors import UsageError
from stoker.logs import LOGGER, use_handler
from stoker.loopback import NAMES, is_loopback, name_of
from stoker.serve import bundle
from stoker.serve.foreign import places
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rollout.recordings import MOST_VALUES
from stoker.serve.server import sockets, supervising
from stoker.serve.server.log import ServerLog
from stoker.tracking.store import address
from stoker.tracking.store.address import Address

_IN_FLIGHT = 256 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker serve`."""
    parser.add_argument(
        "models",
        type=parse_named_path,
        nargs="+",
        metavar="[NAME=]PATH",
        help="a bundle, a SavedModel, a directory of numbered ones, or a run of stoker train; a path or a URL",
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
        "--max-connections",
        type=int,
        default=1000,
        metavar="N",
        help="how many clients may be connected (1000)",
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
        "--record-values",
        type=int,
        default=MOST_VALUES,
        metavar="N",
        help="record inputs and answers of at most this many values; of larger ones, only the shape (1024)",
    )
    add_rollout(parser)
    parser.add_argument(
        "--ledger",
        action="store_true",
        help="account for every second of a request; shown at the end and at /ledger",
    )
    parser.add_argument(
        "--otel",
        action="store_true",
        help="export traces and metrics with OpenTelemetry, even if no OTEL_EXPORTER_OTLP_ENDPOINT is set",
    )
    add_trust(parser)
    parser.add_argument(
        "--trusted-only",
        action="store_true",
        help="refuse models that are not bundles: they may run any operation",
    )
    parser.add_argument(
        "--allow-reload-requests",
        action="store_true",
        help="let gRPC clients choose the models with HandleReloadConfigRequest (needs --workers 1)",
    )
    add_store(parser)
    parser.add_argument(
        "--access-log", action="store_true", help="log one line of JSON per request to stderr"
    )


def run(args: argparse.Namespace) -> int:
    """Check the request, listen, and serve."""
    with use_handler(ServerLog()):
        return _run(args, LOGGER.info)


def _run(args: argparse.Namespace, say: Callable[[str], None]) -> int:
    models = dict(_parse_model(word) for word in args.models)
    if len(models) != len(args.models):
        raise UsageError("two models have the same name: give NAME=PATH")
    _check(args)
    check_installed("stoker serve", grpc=bool(args.grpc_port))
    token = _tokens.read_token(args, "STOKER_SERVE_TOKEN") or ""
    trust = trust_of(args)
    rollout = read_rollout(args, models, _parse_model)
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
        grpc=f"{_bracket_ipv6(args.host)}:{args.grpc_port}" if args.grpc_port else "",
        engine=args.engine,
        ledger=args.ledger,
        otel=args.otel,
        record=args.record,
        record_values=args.record_values,
        shadows=rollout.shadows,
        shadow_allowed=rollout.allowed,
        canary=rollout.canary,
        allow_ops=trust.allow_ops,
        public_key=trust.public_key,
        trusted_only=args.trusted_only,
        reload_requests=args.allow_reload_requests,
        tls_certificate=args.tls_cert,
        tls_key=args.tls_key,
    )
    store = address.find(read_store_option(args))
    if args.record and store is None:
        raise UsageError("--record needs a store: STOKER_STORE says off; give --store URL")
    return listen_and_serve(
        settings, ServerAddress(args.host, args.port, args.grpc_port), store, args.workers, say
    )


@dataclass(frozen=True)
class ServerAddress:
    """The address at which a server listens; a gRPC port of 0 means no gRPC."""

    host: str
    port: int
    grpc_port: int


def check_installed(command: str, grpc: bool) -> None:
    """Refuse to start without the packages that a server needs."""
    needed = {"uvicorn": "serve", "orjson": "serve", "tensorflow": "cpu"} | ({"grpc": "grpc"} if grpc else {})
    for name, extra in needed.items():
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"{command} needs {name}: install it with pip install 'stoker[{extra}]'")


def listen_and_serve(
    settings: ServerSettings,
    at: ServerAddress,
    store: Address | None,
    workers: int,
    say: Callable[[str], None],
) -> int:
    """Serve until asked to stop. If there is a store, the server is a run in it."""
    sock = sockets.listen(at.host, at.port)
    shared = sockets.reserve(at.host, at.grpc_port) if at.grpc_port else None
    if shared is not None and workers == 1:
        shared.close()  # a single process takes the address for itself, and shares it with no other
    scheme = "https" if settings.tls_certificate else "http"
    host, port = sock.getsockname()[:2]
    models = ", ".join(settings.models)
    say(f"serving {models} (with a page for your browser) on {scheme}://{_bracket_ipv6(host)}:{port}")
    if not settings.token and not is_loopback(at.host):
        say(
            f"warning: anyone who can reach {at.host} can use these models: "
            "set STOKER_SERVE_TOKEN (or --token) to ask for a token"
        )
    from stoker.serve.plane import deployment  # needs orjson, an extra

    kept = deployment.begin_run(settings, store)
    url = "" if store is None else store.url or f"sqlite:///{store.path}"
    settings = replace(settings, run=kept.id, store=url)
    try:
        code = _serve(settings, sock, say, workers)
    except BaseException as error:
        deployment.end_run(kept, error)
        raise
    deployment.end_run(kept, code=code)
    return code


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _hosts(allowed: str, host: str, token: str) -> tuple[str, ...]:
    """Return the names to which a request may be sent; empty for any.

    A page in a browser on this machine can reach a loopback address under a name of its own (DNS rebinding), but it
    does not know a token.
    """
    local = (*NAMES, _bracket_ipv6(host).lower()) if is_loopback(host) else ()
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


def _parse_model(word: str, usual: str = "model") -> tuple[str, str]:
    name, found, path = word.partition("=")
    if not found or storage.is_url(word):
        name, path = usual, word
    if name and not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise UsageError(f"{name!r} is not a valid model name: use letters, digits, '_', '-' and '.'")
    if not path:
        raise UsageError(f"{word!r} has no path: give {name or 'NAME'}=PATH")
    return name, str(_locate(path))


def _locate(path: str) -> Path:
    """Return the directory that a path means: a model that Stoker did not export, or what `bundle.locate` finds."""
    place = bundle.local_place(path)
    if any(map(places.is_foreign_model, bundle.list_places(place))):
        return place
    try:
        return bundle.locate(place)
    except bundle.BundleError as error:
        if not place.is_dir():
            raise
        raise bundle.BundleError(f"{error}; it has no {places.SAVED_MODEL} either") from None


def _check(args: argparse.Namespace) -> None:
    positive = (
        "workers", "max_body", "max_rows", "max_string", "max_connections", "body_timeout", "queue", "timeout", "batch",
        "record_values",
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
    if args.allow_reload_requests and args.workers > 1:
        raise UsageError("--allow-reload-requests needs --workers 1: a request reaches only one worker")
    if not 0 <= args.record <= 1:
        raise UsageError(f"--record {args.record} must be between 0 and 1")
    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("HTTPS needs both --tls-cert and --tls-key")
    for file in (args.tls_cert, args.tls_key):
        if file and not Path(file).is_file():
            raise UsageError(f"there is no file {file}")
