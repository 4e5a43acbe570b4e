"""What the environment asks for; bad variables and missing packages are one line, and the server serves."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("orjson")
pytest.importorskip("uvicorn")
pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from stoker.errors import UsageError
from stoker.serve.batching import BatchCall
from stoker.serve.http.app import App
from stoker.serve.plane.settings import ALONE
from stoker.serve.telemetry.environment import TelemetryPlan, read_plan
from stoker.serve.telemetry.requests import RequestTracer
from stoker.serve.telemetry.starting import Telemetry, start_telemetry
from tests.serve.http.asking import application

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
BOTH = TelemetryPlan("http://here:4318", "http://here:4318")


@pytest.mark.parametrize(
    ("given", "wanted", "plan"),
    [
        ({}, False, None),
        ({"OTEL_SERVICE_NAME": "pets"}, False, None),
        ({}, True, TelemetryPlan("http://localhost:4318", "http://localhost:4318")),
        ({ENDPOINT: "http://here:4318/"}, False, BOTH),
        ({ENDPOINT: "http://user:secret@here:4318/otlp"}, True, BOTH),
        ({ENDPOINT: "https://[::1]:1"}, False, TelemetryPlan("https://[::1]:1", "https://[::1]:1")),
        ({ENDPOINT: "http://here:4318", "OTEL_SDK_DISABLED": "True"}, True, None),
        ({ENDPOINT: "http://here:4318", "OTEL_METRICS_EXPORTER": "none"}, False, TelemetryPlan(BOTH.traces, "")),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, False, TelemetryPlan("http://localhost:4318", "")),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://here:4318"}, False, TelemetryPlan("", BOTH.metrics)),
        (
            {ENDPOINT: "http://here:4318", "OTEL_BSP_MAX_QUEUE_SIZE": "7", "OTEL_BSP_SCHEDULE_DELAY": "50"},
            False,
            TelemetryPlan(BOTH.traces, BOTH.metrics, delay_s=0.05, queue=7),
        ),
    ],
)  # fmt: skip
def test_what_the_environment_asks_for(
    given: dict[str, str], wanted: bool, plan: TelemetryPlan | None
) -> None:
    assert read_plan(given, wanted) == plan


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({ENDPOINT: "collector:4317"}, f"{ENDPOINT} must be a URL such as http://localhost:4318"),
        ({ENDPOINT: "http://[here"}, f"{ENDPOINT} must be a URL"),
        ({ENDPOINT: "http://here:x"}, f"{ENDPOINT} must be a URL"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported: use http"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin is not supported: use otlp or none"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "many"}, "OTEL_BSP_MAX_QUEUE_SIZE=many must be a whole number from 1 to"),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "0"}, "OTEL_METRIC_EXPORT_INTERVAL=0 must be a whole number from 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_one_line(given: dict[str, str], line: str) -> None:
    with pytest.raises(UsageError) as error:
        read_plan(given, True)
    assert str(error.value).startswith(line)


@pytest.fixture(scope="module")
def app(pets: tuple[Any, Path]) -> App:
    return application({"pets": pets[1]})[0]


def start(app: App) -> tuple[Telemetry, list[str]]:
    said: list[str] = []
    return start_telemetry(True, app.models, ALONE, said.append), said


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        (ENDPOINT, "nonsense", f"{ENDPOINT} must be a URL"),
        ("OTEL_TRACES_SAMPLER", "nonsense", "nonsense"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "Invalid timeout value 'soon'"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "zip"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret word", "OTEL_EXPORTER_OTLP_HEADERS is not valid"),
    ],
)
def test_a_bad_variable_switches_it_off_in_one_line(
    app: App, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    telemetry, said = start(app)
    assert telemetry == Telemetry()
    (line,) = said
    assert line.startswith("warning: OpenTelemetry is off: ")
    assert words in line
    assert "secret" not in line


@pytest.mark.parametrize(
    "missing", ["opentelemetry", "opentelemetry.exporter.otlp.proto.http.trace_exporter"]
)
def test_a_missing_package_switches_it_off_in_one_line(
    app: App, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in [
        one for one in sys.modules if one.startswith(("opentelemetry", "stoker.serve.telemetry.se"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    telemetry, said = start(app)
    assert telemetry == Telemetry()
    (line,) = said
    assert line.startswith(f"warning: OpenTelemetry is off: it needs {missing}")
    assert line.endswith("install it with pip install 'stoker[otel]'")


def test_without_being_asked_nothing_is_imported_or_noted(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delenv(ENDPOINT, raising=False)
    said: list[str] = []
    assert start_telemetry(False, app.models, ALONE, said.append) == Telemetry()
    assert not said
    assert app.begin("POST", "/v1/models/pets:predict", {b"traceparent": b"any"}).trace is None


def test_the_queue_of_notes_is_bounded_and_long_headers_are_not_kept() -> None:
    woken: list[int] = []
    tracer = RequestTracer(["traceparent"], most=3, wake_at=2, wake=lambda: woken.append(1))
    call = BatchCall(0.0, 0.0, 0.0, 0.0, 1, 1)
    for _ in range(5):
        trace = tracer.begin_http("/", {b"traceparent": b"x" * 5000, b"other": b"y"}, 0.0)
        assert trace.carrier == {}
        trace.add_call(0.0, call, 1)
        tracer.finish(trace, "", "pets", 1, 200, 1.0)
    assert (len(tracer.done), tracer.lost, woken) == (3, 2, [1])
