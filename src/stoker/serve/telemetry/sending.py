"""The thread that makes and sends spans and metrics. It gives way to requests, and reports a failure only once.

It uses at most a fifth of the process's time. If a collector does not answer, no requests are noted, and the collector
is tried again after pauses that grow.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from stoker.errors import describe_error
from stoker.serve.telemetry.counts import CountReader
from stoker.serve.telemetry.environment import TelemetryPlan
from stoker.serve.telemetry.requests import RequestTracer
from stoker.serve.telemetry.spans import SpanMaker

_SPANS_EACH = 4  # spans of each request
# After work, rest this many times as long as the work took.
_REST = 4
_LONGEST_PAUSE_S = 300.0
# How long a server that ends waits for the last spans.
_LAST_S = 3.0


class Notes(logging.Handler):
    """Keeps what OpenTelemetry's packages log, so that the server can report it once, in its own words."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # The message about headers contains their values, which may be secret.
        line = "OTEL_EXPORTER_OTLP_HEADERS is not valid" if ".util." in record.name else record.getMessage()
        self.lines.append(line.splitlines()[0][:200] if line else "")

    def take(self) -> str:
        """Return the first line since the last call; "" for none."""
        found, self.lines = self.lines, []
        return found[0] if found else ""


class TelemetryDelivery:
    """The state of a collector: whether it takes spans, or metrics.

    Changes are reported once. After a failure, new attempts follow.
    """

    def __init__(
        self, what: str, place: str, pause_s: float, notes: Notes, say: Callable[[str], None]
    ) -> None:
        self._what, self._place, self._notes, self._say = what, place, notes, say
        self._first_pause_s = self._pause = pause_s
        self._again = 0.0
        self.is_failing = False

    def is_due(self) -> bool:
        """Return whether to send, or to try again."""
        return not self.is_failing or time.monotonic() >= self._again

    def attempt(self, send: Callable[[], bool]) -> bool:
        """Send, and note whether that worked."""
        reason = ""
        try:
            worked = send()
        except Exception as error:  # noqa: BLE001 - whatever a collector does, the server goes on
            worked, reason = False, describe_error(error)
        reason = self._notes.take() or reason or "no reason given"
        if worked and self.is_failing:
            self._say(f"OpenTelemetry: {self._place} accepts {self._what} again")
            self._pause = self._first_pause_s
        elif not worked and not self.is_failing:
            self._say(f"OpenTelemetry: no {self._what} are sent until {self._place} accepts them: {reason}")
        elif not worked:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
        self.is_failing, self._again = not worked, time.monotonic() + self._pause
        return worked


def _send_all(exporter: OTLPSpanExporter, spans: list[ReadableSpan]) -> bool:
    return exporter.export(spans) is SpanExportResult.SUCCESS


class Sender:
    """Sends what has gathered, every few seconds, until it is closed."""

    def __init__(self, plan: TelemetryPlan, notes: Notes, say: Callable[[str], None]) -> None:
        self._plan, self._say = plan, say
        self._ended = False
        self._woken = threading.Event()
        self._spans = OTLPSpanExporter() if plan.traces else None
        self._metrics = OTLPMetricExporter() if plan.metrics else None
        self._span_delivery = TelemetryDelivery("traces", plan.traces, plan.delay_s, notes, say)
        self._metric_delivery = TelemetryDelivery("metrics", plan.metrics, plan.interval_s, notes, say)
        self._said_lost = False
        self._thread = threading.Thread(target=self._run, name="stoker-otel", daemon=True)

    def wake(self) -> None:
        """Wake the thread, as there is enough to send."""
        self._woken.set()

    def start(self, tracer: RequestTracer | None, maker: SpanMaker, counts: CountReader) -> None:
        """Begin to send."""
        self._tracer, self._maker, self._counts = tracer, maker, counts
        self._thread.start()

    def close(self) -> None:
        """Send the rest, if a collector takes it soon."""
        self._ended = True
        self._woken.set()
        self._thread.join(_LAST_S)
        for exporter in (self._spans, self._metrics):
            if exporter is not None:
                with suppress(Exception):  # it may be in the middle of a request
                    exporter.shutdown()

    def _run(self) -> None:
        metrics_at = time.monotonic() + self._plan.interval_s
        while not self._ended:
            self._woken.wait(max(0.0, min(self._plan.delay_s, metrics_at - time.monotonic())))
            self._woken.clear()
            self._send_spans()
            if self._ended or time.monotonic() >= metrics_at:
                metrics_at = time.monotonic() + self._plan.interval_s
                self._send_metrics()

    def _send_spans(self) -> None:
        tracer, exporter, delivery = self._tracer, self._spans, self._span_delivery
        if tracer is None or exporter is None or not delivery.is_due():
            return
        tracer.is_on = True  # so that there is something to try with
        while tracer.done:
            began = time.thread_time()
            size = min(len(tracer.done), max(1, self._plan.batch // _SPANS_EACH))
            spans = self._maker.make([tracer.done.popleft() for _ in range(size)])
            if spans and not delivery.attempt(partial(_send_all, exporter, spans)):
                tracer.is_on = False
                tracer.done.clear()
                return
            if not self._ended:
                time.sleep(_REST * (time.thread_time() - began))
        if tracer.lost and not self._said_lost:
            self._said_lost = True
            self._say(
                "OpenTelemetry: requests come faster than they can be traced, and some are left out: "
                "set OTEL_TRACES_SAMPLER, for example parentbased_traceidratio"
            )

    def _send_metrics(self) -> None:
        exporter = self._metrics
        if exporter is not None and self._metric_delivery.is_due():
            self._metric_delivery.attempt(
                lambda: exporter.export(self._counts.read()) is MetricExportResult.SUCCESS
            )
