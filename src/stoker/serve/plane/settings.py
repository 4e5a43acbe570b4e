"""The options of a server: limits that keep one request from hurting the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class ServerWorker:
    """Which of a server's processes this is; they share a file of counts."""

    number: int = 0
    count: int = 1
    metrics_file: str = ""


ALONE = ServerWorker()


@dataclass(frozen=True)
class ServerSettings:
    """The options of a server.

    Attributes:
        models: path of the bundle of each model, or of a directory of numbered bundles.
        token: what clients must send as `Authorization: Bearer ...`; empty for none.
        body_bytes: the largest body.
        rows: the most rows in one request.
        string_bytes: the longest string.
        queue: how many rows may wait; beyond it, 429.
        timeout: the longest wait for an answer in seconds; then 504.
        batch: the most rows in one call of a model.
        connections: how many clients may be connected to a process; beyond it, 503.
        held_bytes: what the bodies of unanswered requests of a process may take together; beyond it, 503.
        body_timeout: the longest a request may take to arrive, in seconds; then 408.
        drain_delay: how many seconds to accept connections after SIGTERM, while `/readyz` answers 503.
        hosts: the names that the Host header may have, in lower case; empty for any.
        access_log: a line of JSON for every request, not only for failures.
        reload_s: how often new bundles are looked for.
        engine: what computes the answers; "" measures.
        ledger: account every second of a request.
        record: the share of requests to record with their answers.
        run: the id of the server's run in the store, "" for none; `store` is the store's URL.
        allow_ops: operations that a bundle may have even though they reach outside the model.
        public_key: the key that must have signed every bundle; "" for none.
        grpc: the address of the gRPC service, such as 127.0.0.1:8500; empty for none.
        tls_certificate, tls_key: files for HTTPS; empty for plain HTTP.
    """

    models: dict[str, str]
    token: str = ""
    body_bytes: int = 16 << 20
    rows: int = 10_000
    string_bytes: int = 1 << 20
    queue: int = 8192
    timeout: float = 30.0
    batch: int = 256
    connections: int = 1000
    held_bytes: int = 256 << 20
    body_timeout: float = 60.0
    drain_delay: float = 0.5
    hosts: tuple[str, ...] = ()
    access_log: bool = False
    reload_s: float = 1.0
    grpc: str = ""
    engine: str = ""
    ledger: bool = False
    record: float = 0.0
    run: str = ""
    store: str = ""
    allow_ops: Sequence[str] = ()
    public_key: str = ""
    tls_certificate: str = ""
    tls_key: str = ""

    def dumps(self) -> str:
        """The settings as text, for another process."""
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> ServerSettings:
        """The reverse of `dumps`."""
        found = json.loads(text)
        return ServerSettings(**{**found, "hosts": tuple(found["hosts"])})
