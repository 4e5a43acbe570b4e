"""The counts of this process as OpenTelemetry's metrics, under the names that `/metrics` gives them.

`plane.metrics` counts them already; an SDK's instruments would count every request a second time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from stoker.serve.plane.metrics import CountSeries, Metrics
from stoker.serve.telemetry.spans import SCOPE
from stoker.version import __version__

_TOTAL = AggregationTemporality.CUMULATIVE


class CountReader:
    """Reads the counts that this process has added since its start."""

    def __init__(self, metrics: Metrics, resource: Resource, refresh: Callable[[], None]) -> None:
        self._metrics, self._resource, self._refresh = metrics, resource, refresh
        self._began = time.time_ns()
        # A process that replaces another continues that one's counts.
        self._before = {
            (one.name, one.model, one.label): one.values for one in metrics.own_series() if any(one.values)
        }

    def read(self) -> MetricsData:
        """Return all counts that are not zero."""
        self._refresh()
        moment = time.time_ns()
        found: dict[str, Metric] = {}
        for one in self._metrics.own_series():
            before = self._before.get((one.name, one.model, one.label))
            values = one.values
            if before is not None and one.kind != "gauge":
                values = [value - old for value, old in zip(values, before, strict=True)]
            if not any(values) and one.kind != "gauge":
                continue
            metric = found.get(one.name)
            if metric is None:
                metric = found[one.name] = _make_metric(one)
            _add_point(metric, one, values, self._began, moment)
        scope = ScopeMetrics(InstrumentationScope(SCOPE, __version__), list(found.values()), "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


def _make_metric(one: CountSeries) -> Metric:
    unit = "s" if "seconds" in one.name else "By" if "bytes" in one.name else "1"
    data: Sum | Gauge | Histogram
    if one.kind == "histogram":
        data = Histogram([], _TOTAL)
    elif one.kind == "gauge":
        data = Gauge([])
    else:
        data = Sum([], _TOTAL, is_monotonic=True)
    return Metric(one.name, one.text, unit, data)


def _add_point(metric: Metric, one: CountSeries, values: list[float], began: int, moment: int) -> None:
    attributes = {"model": one.model}
    if one.label:
        name, _, value = one.label.partition("=")
        attributes[name] = value.strip('"')
    points: Any = metric.data.data_points  # the list made above
    if one.kind == "histogram":
        *counts, total = values
        buckets = [int(count) for count in counts]
        missing: Any = None  # the extremes are not recorded; OTLP allows them to be missing
        count = sum(buckets)
        points.append(
            HistogramDataPoint(
                attributes, began, moment, count, total, buckets, one.bounds, min=missing, max=missing
            )
        )
    else:
        number = values[0]
        points.append(
            NumberDataPoint(attributes, began, moment, int(number) if number.is_integer() else number)
        )
