"""Serve bundles over HTTP: TensorFlow Serving's REST API, the Open Inference Protocol, a page to try them.

    stoker serve bundle/
    stoker serve prices=bundle/ pets=versions/ --port 8501 --workers 4
    curl -d '{"instances": [[1.0, 2.0]]}' localhost:8501/v1/models/model:predict

A model is NAME=PATH, or PATH alone, whose name is then "model". PATH is a bundle, or a directory with bundles in
directories named by numbers. A bundle that is renamed into place is taken without a failed request. SIGTERM finishes
what was asked, and ends. Exit code: 0; 2 for a bad request or a bundle that does not work.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import socket
import sys
from dataclasses import replace
from pathlib import Path

from stoker.commands.runs import add_store
from stoker.errors import UsageError
from stoker.serve.http import supervising
from stoker.serve.http.settings import Settings
from stoker.store import address


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker serve`."""
    parser.add_argument(
        "models", nargs="+", metavar="[NAME=]PATH", help="a bundle, or a directory of numbered ones"
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8501, help="the port (8501); 0 takes a free one")
    parser.add_argument(
        "--grpc-port", type=int, default=0, metavar="PORT", help="also serve gRPC there (off)"
    )
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (1)")
    parser.add_argument(
        "--token",
        default="",
        help="what clients must send as a bearer token; or STOKER_SERVE_TOKEN in the environment",
    )
    parser.add_argument("--tls-cert", default="", metavar="FILE", help="a certificate, to serve HTTPS")
    parser.add_argument("--tls-key", default="", metavar="FILE", help="its key")
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
        "--queue", type=int, default=8192, metavar="ROWS", help="how many rows may wait (8192)"
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
        help="what computes the answers (the quickest that gives the recorded ones)",
    )
    parser.add_argument(
        "--record",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="keep this share of requests, and tell of drift (0)",
    )
    parser.add_argument(
        "--ledger",
        action="store_true",
        help="account every second of a request; told at the end and at /ledger",
    )
    add_store(parser)
    parser.add_argument(
        "--access-log", action="store_true", help="a line of JSON for every request, to stderr"
    )


def run(args: argparse.Namespace) -> int:
    """Check the request, listen, serve."""
    models = dict(_named(word) for word in args.models)
    if len(models) != len(args.models):
        raise UsageError("two models have the same name: give NAME=PATH")
    _check(args)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    needed = {"uvicorn": "serve", "orjson": "serve", "tensorflow": "cpu"}
    for name, extra in (needed | ({"grpc": "grpc"} if args.grpc_port else {})).items():
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"stoker serve needs {name}: install it with pip install 'stoker[{extra}]'")
    settings = Settings(
        models,
        token=args.token or os.environ.get("STOKER_SERVE_TOKEN", ""),
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
    )
    store = address.find(getattr(args, "store", None))
    if args.record and store is None:
        raise UsageError("--record needs a store: STOKER_STORE says off; give --store URL")
    sock = supervising.listening(args.host, args.port)
    scheme = "https" if args.tls_cert else "http"
    host, port = sock.getsockname()[:2]
    _say(f"serving {', '.join(models)} on {scheme}://{_in_url(host)}:{port}")
    tls = supervising.Tls(args.tls_cert, args.tls_key)
    from stoker.serve.http import deployment  # needs orjson, an extra

    kept = deployment.begun(settings, store)
    url = "" if store is None else store.url or f"sqlite:///{store.path}"
    settings = replace(settings, run=kept.id, store=url)
    try:
        code = _served(settings, sock, tls, args.workers)
    except BaseException as error:
        deployment.ended(kept, error)
        raise
    deployment.ended(kept, code=code)
    return code


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _served(settings: Settings, sock: socket.socket, tls: supervising.Tls, workers: int) -> int:
    if workers > 1:
        return supervising.supervise(settings, sock, tls, _say, workers)
    from stoker.serve.http.running import serve  # loads TensorFlow

    return serve(settings, sock, tls, _say)


def _named(word: str) -> tuple[str, str]:
    name, found, path = word.partition("=")
    if not found:
        name, path = "model", word
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise UsageError(f"{name!r} is no name for a model: letters, digits, '_', '-' and '.' are")
    if not Path(path).is_dir():
        raise UsageError(f"there is no directory {path}")
    return name, path


def _check(args: argparse.Namespace) -> None:
    for option in ("workers", "max_body", "max_rows", "max_string", "queue", "timeout", "batch"):
        if getattr(args, option) <= 0:
            raise UsageError(f"--{option.replace('_', '-')} {getattr(args, option)} must be more than 0")
    if not 0 <= args.record <= 1:
        raise UsageError(f"--record {args.record} must be between 0 and 1")
    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("HTTPS needs both --tls-cert and --tls-key")
    for file in (args.tls_cert, args.tls_key):
        if file and not Path(file).is_file():
            raise UsageError(f"there is no file {file}")


def _say(line: str) -> None:
    print(f"stoker: {line}", file=sys.stderr, flush=True)
