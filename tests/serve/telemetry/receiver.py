"""An OTLP receiver on loopback that keeps what it is sent, and fails when told to."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """What came, and the status of the next answers."""

    def __init__(self) -> None:
        self.status = 200
        self.requests = 0
        self.spans: list[Any] = []
        self.resources: list[dict[str, Any]] = []
        self.metrics: dict[str, Any] = {}  # the last of each name
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    data = gzip.decompress(data)
                if receiver.status == 200:
                    receiver.take(self.path, data)
                receiver.requests += 1
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                pass

        return Handler

    def take(self, path: str, data: bytes) -> None:
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(data).resource_spans:
                self.resources.append(values_of(group.resource))
                for scope in group.scope_spans:
                    self.spans.extend(scope.spans)
        elif path == "/v1/metrics":
            for group in ExportMetricsServiceRequest.FromString(data).resource_metrics:
                for scope in group.scope_metrics:
                    self.metrics.update({one.name: one for one in scope.metrics})
        else:
            raise AssertionError(path)

    def trace(self, trace_id: str) -> dict[str, Any]:
        """The spans of a trace by name."""
        return {one.name: one for one in list(self.spans) if one.trace_id.hex() == trace_id}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receive() -> Iterator[Receiver]:
    found = Receiver()
    try:
        yield found
    finally:
        found.close()


def values_of(holder: Any) -> dict[str, Any]:
    """Attributes as Python's values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in holder.attributes}
