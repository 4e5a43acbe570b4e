"""Make spans from the notes of requests: one for the request, and below it the queue, the batch and the engine."""

from __future__ import annotations

import time
from collections.abc import Sequence

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.util.types import AttributeValue

from stoker import clock
from stoker.serve.batching import BatchCall
from stoker.serve.telemetry.requests import RequestTrace
from stoker.version import __version__

SCOPE = "stoker.serve"


class _EndedSpans(SpanProcessor):
    """Collects the spans to be exported."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.spans.append(span)


class SpanMaker:
    """Makes spans with the SDK, using the sampler, limits and ids that the environment asks for."""

    def __init__(self, resource: Resource) -> None:
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._ended = _EndedSpans()
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer(SCOPE, __version__)
        self._offset_ns = 0

    def make(self, requests: Sequence[RequestTrace]) -> list[ReadableSpan]:
        """Return the spans of requests, except those that the sampler leaves out."""
        self._offset_ns = time.time_ns() - clock.now_ns()
        for one in requests:
            self._trace_request(one)
        found, self._ended.spans = self._ended.spans, []
        return found

    def _at(self, seconds: float) -> int:
        """Convert a moment on the clock of `stoker.clock` to nanoseconds since 1970."""
        return int(seconds * 1e9) + self._offset_ns

    def _trace_request(self, request: RequestTrace) -> None:
        name = (
            f"{request.service}/{request.operation}"
            if request.service
            else f"POST {request.operation}".strip()
        )
        span = self._tracer.start_span(
            name,
            propagate.extract(request.carrier, Context()),
            SpanKind.SERVER,
            _describe(request),
            start_time=self._at(request.began),
        )
        if span.is_recording():
            for put_at, call, _ in request.calls:
                self._trace_call(span, put_at, call)
            if request.status >= 500:
                span.set_status(Status(StatusCode.ERROR))
        span.end(self._at(request.ended))

    def _trace_call(self, parent: Span, put_at: float, call: BatchCall) -> None:
        """Add spans for the queue, the batch and the engine, one after the other.

        A batch answers requests of different traces. Its span in the first one is the batch itself; the spans in the
        others link to that one.
        """
        below = set_span_in_context(parent, Context())
        engine_began = call.engine_began or call.began  # joining the rows may have failed
        self._add(below, "queue", put_at, call.began)
        first = call.traced_as
        links = [Link(first)] if isinstance(first, SpanContext) else []
        shared: dict[str, AttributeValue] = {
            "stoker.batch.rows": call.rows,
            "stoker.batch.requests": call.jobs,
        }
        made = self._add(below, "batch", call.began, engine_began, shared, links)
        if first is None and call.jobs > 1:
            call.traced_as = made
        self._add(below, "engine", engine_began, engine_began + call.engine_s)

    def _add(
        self,
        below: Context,
        name: str,
        began: float,
        ended: float,
        attributes: dict[str, AttributeValue] | None = None,
        links: Sequence[Link] = (),
    ) -> SpanContext:
        span = self._tracer.start_span(
            name, below, attributes=attributes, links=links, start_time=self._at(began)
        )
        span.end(self._at(max(began, ended)))
        return span.get_span_context()


def _describe(request: RequestTrace) -> dict[str, AttributeValue]:
    """Return a span's attributes, by OpenTelemetry's conventions where they exist."""
    common: dict[str, AttributeValue] = {
        "stoker.model": request.model, "stoker.rows": request.rows, "stoker.status": request.status,
        "stoker.request_id": request.id,
    }  # fmt: skip
    if request.calls:
        common["stoker.version"] = request.calls[-1][2]
    if request.service:
        return {
            **common, "rpc.system": "grpc", "rpc.service": request.service, "rpc.method": request.operation,
        }  # fmt: skip
    return {
        **common, "http.request.method": "POST", "http.route": request.operation, "url.path": request.path,
        "http.response.status_code": request.status,
    }  # fmt: skip
