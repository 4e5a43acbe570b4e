"""Read what OpenTelemetry's standard environment variables ask for. The SDK itself reads the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from stoker.errors import UsageError

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_DEFAULT = "http://localhost:4318"
_PROTOCOL = "http/protobuf"
_MOST_MS = 24 * 3600 * 1000


@dataclass(frozen=True)
class TelemetryPlan:
    """The telemetry to export, and how.

    Attributes:
        traces, metrics: where they go, as shown to people, without the path; "" for not at all.
        delay_s: how long spans wait for others to be sent with.
        queue: how many requests wait at most.
        batch: how many spans are sent together.
        interval_s: how often metrics are sent.
    """

    traces: str
    metrics: str
    delay_s: float = 5.0
    queue: int = 2048
    batch: int = 512
    interval_s: float = 60.0


def read_plan(given: Mapping[str, str], wanted: bool) -> TelemetryPlan | None:
    """Return what is asked for, by an option (`wanted`) or only by the environment; None for nothing.

    Raises:
        UsageError: a variable's value is not supported.
    """
    if given.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    traces, metrics = (_find_place(given, signal, wanted) for signal in ("TRACES", "METRICS"))
    if not traces and not metrics:
        return None
    return TelemetryPlan(
        traces,
        metrics,
        delay_s=_read_number(given, "OTEL_BSP_SCHEDULE_DELAY", 5000, _MOST_MS) / 1000,
        queue=_read_number(given, "OTEL_BSP_MAX_QUEUE_SIZE", 2048, 1 << 20),
        batch=_read_number(given, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 1 << 16),
        interval_s=_read_number(given, "OTEL_METRIC_EXPORT_INTERVAL", 60_000, _MOST_MS) / 1000,
    )


def _find_place(given: Mapping[str, str], signal: str, wanted: bool) -> str:
    """Return where the collector of traces or metrics is; "" if they are not asked for."""
    exporter = given.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    name = own if given.get(own) else _ENDPOINT
    if exporter == "none" or not (wanted or exporter or given.get(name)):
        return ""
    if exporter not in ("", "otlp"):
        raise UsageError(f"OTEL_{signal}_EXPORTER={exporter} is not supported: use otlp or none")
    protocols = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    variable = next((one for one in protocols if given.get(one)), "")
    if variable and given[variable].strip().lower() != _PROTOCOL:
        raise UsageError(f"{variable}={given[variable]} is not supported: use {_PROTOCOL}")
    return _show_place(name, given.get(name) or _DEFAULT)


def _show_place(variable: str, url: str) -> str:
    """Return a URL without its path and its password; raise UsageError if it is invalid."""
    try:
        found = urlsplit(url)
        port = "" if found.port is None else f":{found.port}"
    except ValueError:
        found, port = urlsplit(""), ""
    if found.scheme not in ("http", "https") or not found.hostname:
        raise UsageError(f"{variable} must be a URL such as {_DEFAULT}")
    host = f"[{found.hostname}]" if ":" in found.hostname else found.hostname
    return f"{found.scheme}://{host}{port}"


def _read_number(given: Mapping[str, str], variable: str, usual: int, most: int) -> int:
    text = given.get(variable, "").strip()
    if not text:
        return usual
    if not text.isdecimal() or not 0 < int(text[:12]) <= most or len(text) > 12:
        raise UsageError(f"{variable}={text[:40]} must be a whole number from 1 to {most}")
    return int(text)
