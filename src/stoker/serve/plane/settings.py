"""The options of a server, including the limits that keep one request from hurting the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from stoker.serve.rollout.evidence import ALLOWED
from stoker.serve.rollout.recordings import MOST_VALUES


@dataclass(frozen=True)
class ServerWorker:
    """One of a server's processes. They share a file of counts."""

    number: int = 0
    count: int = 1
    metrics_file: str = ""


ALONE = ServerWorker()


@dataclass(frozen=True)
class VersionPolicy:
    """The numbered versions of a model to load, and their additional labels.

    Attributes:
        latest: how many of the newest versions to load; 0 for all.
        specific: the only versions to load; empty for any.
        labels: versions by label, in addition to "latest", "stable" and "previous".
    """

    latest: int = 0
    specific: tuple[int, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)

    def choose(self, numbers: Iterable[int]) -> set[int]:
        """Return which of these versions to load."""
        if self.specific:
            return set(numbers) & set(self.specific)
        newest = sorted(set(numbers), reverse=True)
        return set(newest[: self.latest] if self.latest else newest)


ALL_VERSIONS = VersionPolicy()


@dataclass(frozen=True)
class ServerSettings:
    """The options of a server.

    Attributes:
        models: for each model, the path of its bundle, or of a directory of numbered bundles.
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
        access_log: log a line of JSON for every request, not only for failures.
        reload_s: how often new bundles are looked for.
        engine: the engine that computes the answers; "" to choose by measuring.
        ledger: account for every second of a request.
        otel: export traces and metrics with OpenTelemetry; the environment may ask for it, too.
        record: the share of requests to record with their answers.
        record_values: the most values of an input or an answer to record; if there are more, only the shape is
            recorded.
        shadows: by model, the path of a candidate that is asked beside the version that answers.
        shadow_allowed: the share of rows that a candidate may answer differently.
        canary: the share of requests that a candidate answers, until it proves different.
        run: the id of the server's run in the store, "" for none; `store` is the store's URL.
        allow_ops: operations that a bundle may have even though they reach outside the model.
        public_key: the key that must have signed every bundle; "" for none.
        grpc: the address of the gRPC service, such as 127.0.0.1:8500; empty for none.
        grpc_socket: a Unix socket to serve gRPC on, too; empty for none.
        grpc_arguments: options of the gRPC server by name, such as grpc.max_connection_age_ms.
        metrics_path: another path for the metrics, in addition to /metrics; empty for none.
        policies: by model, which versions are loaded; all versions of a model that is not named.
        model_config: the file that lists the models, read again every `model_config_poll_s` seconds (0: never).
        waits_for_models: start even if a model has no version that works yet.
        reload_requests: whether clients may change the list of models (ModelService.HandleReloadConfigRequest).
        prefer_litert: if a SavedModel has a LiteRT file beside it, load the LiteRT file.
        trusted_only: refuse models that are not bundles.
        tags: the tags of the graph to load from a SavedModel; empty for "serve".
        warm_repeats: how many times each request that came with a SavedModel is answered first; 0 for not at all.
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
    grpc_socket: str = ""
    grpc_arguments: Mapping[str, str] = field(default_factory=dict)
    metrics_path: str = ""
    policies: Mapping[str, VersionPolicy] = field(default_factory=dict)
    model_config: str = ""
    model_config_poll_s: float = 0.0
    waits_for_models: bool = False
    reload_requests: bool = False
    prefer_litert: bool = False
    trusted_only: bool = False
    tags: Sequence[str] = ()
    warm_repeats: int = 1
    engine: str = ""
    ledger: bool = False
    otel: bool = False
    record: float = 0.0
    record_values: int = MOST_VALUES
    shadows: Mapping[str, str] = field(default_factory=dict)
    shadow_allowed: float = ALLOWED
    canary: float = 0.0
    run: str = ""
    store: str = ""
    allow_ops: Sequence[str] = ()
    public_key: str = ""
    tls_certificate: str = ""
    tls_key: str = ""

    def dumps(self) -> str:
        """Return the settings as text, for another process."""
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> ServerSettings:
        """Parse the text of `dumps`."""
        found = json.loads(text)
        policies = {
            name: VersionPolicy(**{**one, "specific": tuple(one["specific"])})
            for name, one in found["policies"].items()
        }
        return ServerSettings(**{**found, "hosts": tuple(found["hosts"]), "policies": policies})
