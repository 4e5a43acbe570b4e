"""`stoker serve` with OpenTelemetry, and a receiver that reads what it sends."""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("orjson")
pytest.importorskip("uvicorn")
pytest.importorskip("grpc")
pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

import grpc

from stoker.launch.ports import find_free_ports
from stoker.serve.grpc.messages import INFERENCE, SERVING, message_class
from stoker.serve.grpc.tensors import tensor_of
from stoker.serve.signature import Field
from tests.serve.bundles import rows
from tests.serve.server.test_server import ONE, Server
from tests.serve.telemetry.receiver import Receiver, receive, values_of
from tests.support import HANGS_S, wait_until

PARENT = "00f067aa0ba902b7"
PATH = "/v1/models/model:predict"
SERVER = 2  # the kind of a span


@dataclass
class Traced:
    """A server, its gRPC address, and what receives its spans."""

    server: Server
    grpc: str
    receiver: Receiver


@pytest.fixture(scope="module")
def traced(pets: tuple[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    with receive() as receiver, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        patch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        patch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        patch.setenv("OTEL_SERVICE_NAME", "pets")
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        patch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
        patch.setenv("STOKER_STORE", "off")
        port = find_free_ports(1)[0]
        place = tmp_path_factory.mktemp("traced")
        server = Server(str(pets[1]), "--grpc-port", str(port), directory=place)
        wait_until(lambda: server.said("ready") == 1)
        yield Traced(server, f"127.0.0.1:{port}", receiver)
        server.process.kill()
        server.process.wait()


def parent_of(trace: int, sampled: bool = True) -> dict[str, str]:
    return {"traceparent": f"00-{trace:032x}-{PARENT}-{int(sampled):02x}"}


def ask(server: Server, path: str, body: Any, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANGS_S)
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def call(address: str, service: str, method: str, request: Any, trace: int) -> None:
    with grpc.insecure_channel(address) as channel:
        made = channel.unary_unary(
            f"/{service}/{method}", lambda one: one.SerializeToString(), lambda data: data
        )
        made(request, metadata=list(parent_of(trace).items()), timeout=HANGS_S)


def open_inference_body() -> dict[str, Any]:
    types = {"numbers": "FP32", "width": "INT32"}
    return {
        "inputs": [
            {"name": name, "shape": list(array.shape), "datatype": types[name], "data": array.ravel().tolist()}
            for name, array in rows(3).items()
        ]
    }  # fmt: skip


def grpc_requests() -> Iterator[tuple[str, str, Any]]:
    """A request of three rows for each service."""
    predict = message_class(f"{SERVING}.PredictRequest")()
    predict.model_spec.name = "model"
    infer = message_class(f"{INFERENCE}.ModelInferRequest")()
    infer.model_name, infer.id = "model", "seven"
    for name, array in rows(3).items():
        field = Field(name, str(array.dtype), array.shape[1:], name)
        predict.inputs[name].MergeFromString(tensor_of(field, array))
        datatype = "FP32" if name == "numbers" else "INT32"
        infer.inputs.add(name=name, datatype=datatype, shape=array.shape)
        infer.raw_input_contents.append(array.tobytes())
    yield f"{SERVING}.PredictionService", "Predict", predict
    yield f"{INFERENCE}.GRPCInferenceService", "ModelInfer", infer


def check_trace(receiver: Receiver, trace: int, name: str, count: int) -> dict[str, Any]:
    """A request's spans: its parent is the client's, theirs is the request, and their times add up."""
    wait_until(lambda: len(receiver.trace(f"{trace:032x}")) == 4)
    found = receiver.trace(f"{trace:032x}")
    request, *below = (found[one] for one in (name, "queue", "batch", "engine"))
    assert request.parent_span_id.hex() == PARENT
    assert request.kind == SERVER
    assert [one.parent_span_id for one in below] == [request.span_id] * 3
    assert len({one.span_id for one in found.values()}) == 4
    queue, batch, engine = below
    assert request.start_time_unix_nano <= queue.start_time_unix_nano
    # Seconds become nanoseconds, and a double of them has a place less than that.
    assert abs(queue.end_time_unix_nano - batch.start_time_unix_nano) < 1000
    assert abs(batch.end_time_unix_nano - engine.start_time_unix_nano) < 1000
    assert engine.end_time_unix_nano <= request.end_time_unix_nano + 1000
    took = [one.end_time_unix_nano - one.start_time_unix_nano for one in (request, *below)]
    assert min(took) >= 0
    assert took[3] > 0
    assert sum(took[1:]) <= took[0] + 3000
    attributes = values_of(request)
    assert (attributes["stoker.model"], attributes["stoker.rows"]) == ("model", count)
    assert attributes["stoker.status"] == 200
    return found


def test_a_request_of_each_protocol_is_a_trace(traced: Traced) -> None:
    server, receiver = traced.server, traced.receiver
    tagged = {**parent_of(1), "x-request-id": "mine"}
    assert ask(server, PATH, {"instances": [ONE, ONE]}, tagged) == 200
    assert ask(server, "/v2/models/model/infer", open_inference_body(), parent_of(2)) == 200
    for trace, one in enumerate(grpc_requests(), 3):
        call(traced.grpc, *one, trace)
    first = check_trace(receiver, 1, "POST /v1/models/{model}:predict", 2)
    attributes = values_of(first["POST /v1/models/{model}:predict"])
    assert attributes["http.route"] == "/v1/models/{model}:predict"
    assert attributes["url.path"] == PATH
    assert attributes["http.response.status_code"] == 200
    assert attributes["stoker.request_id"] == "mine"
    assert values_of(first["batch"]) == {"stoker.batch.rows": 2, "stoker.batch.requests": 1}
    check_trace(receiver, 2, "POST /v2/models/{model}/infer", 3)
    check_trace(receiver, 3, f"{SERVING}.PredictionService/Predict", 3)
    last = check_trace(receiver, 4, f"{INFERENCE}.GRPCInferenceService/ModelInfer", 3)
    attributes = values_of(last[f"{INFERENCE}.GRPCInferenceService/ModelInfer"])
    assert (attributes["rpc.system"], attributes["rpc.method"]) == ("grpc", "ModelInfer")
    assert attributes["stoker.request_id"] == "seven"
    assert all(one["service.name"] == "pets" for one in receiver.resources)
    assert all(one["stoker.worker"] == 0 and one["service.instance.id"] for one in receiver.resources)


def test_requests_answered_together_keep_their_traces_and_link_their_batch(traced: Traced) -> None:
    server, receiver = traced.server, traced.receiver
    clients = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANGS_S) for _ in range(6)]
    for client in clients:  # so that they are connected
        client.request("GET", "/healthz")
        client.getresponse().read()
    os.kill(server.process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
    body = json.dumps({"instances": [ONE]})
    for trace, client in enumerate(clients, 100):
        client.request("POST", PATH, body, parent_of(trace))
    os.kill(server.process.pid, signal.SIGCONT)
    for client in clients:
        assert client.getresponse().status == 200
        client.close()
    found = [check_trace(receiver, trace, "POST /v1/models/{model}:predict", 1) for trace in range(100, 106)]
    batches = [one["batch"] for one in found]
    sizes = [values_of(one)["stoker.batch.requests"] for one in batches]
    assert max(sizes) > 1
    for size, batch in zip(sizes, batches, strict=True):
        assert values_of(batch)["stoker.batch.rows"] == size
    # Of each batch of several, one request has no link, and the others link to its batch.
    linked = [one for one in batches if one.links]
    assert len(linked) == sum(size > 1 for size in sizes) - len(
        {one.start_time_unix_nano for one, size in zip(batches, sizes, strict=True) if size > 1}
    )
    firsts = {one.span_id: one for one in batches if not one.links}
    for one in linked:
        (link,) = one.links
        first = firsts[link.span_id]
        assert link.trace_id == first.trace_id != one.trace_id
        assert first.start_time_unix_nano == one.start_time_unix_nano


def test_an_error_has_a_trace_and_a_question_about_the_server_has_none(traced: Traced) -> None:
    server, receiver = traced.server, traced.receiver
    assert server.ask("/v1/models/model")[0] == server.ask("/healthz")[0] == server.ask("/metrics")[0] == 200
    assert ask(server, PATH, {"instances": [ONE]}, parent_of(200, sampled=False)) == 200
    assert ask(server, PATH, {"instances": ["nonsense"]}, parent_of(201)) == 400
    assert ask(server, "/v1/models/other:predict", {"instances": [ONE]}, {"traceparent": "nonsense"}) == 404
    assert ask(server, PATH, {"instances": [ONE]}, parent_of(202)) == 200
    wait_until(lambda: len(receiver.trace(f"{202:032x}")) == 4)
    (failed,) = receiver.trace(f"{201:032x}").values()
    assert values_of(failed)["http.response.status_code"] == 400
    # The client that sends no parent begins a trace, and one that wants no spans gets none.
    (alone,) = (one for one in receiver.spans if values_of(one).get("stoker.model") == "other")
    assert not alone.parent_span_id
    assert not receiver.trace(f"{200:032x}")
    assert {values_of(one).get("url.path", PATH) for one in receiver.spans} == {
        PATH, "/v2/models/model/infer", "/v1/models/other:predict",
    }  # fmt: skip


def test_metrics_are_those_of_the_prometheus_page(traced: Traced) -> None:
    server, receiver = traced.server, traced.receiver
    assert ask(server, PATH, {"instances": [ONE]}, {}) == 200
    lines = server.ask("/metrics")[1].decode().splitlines()
    shown = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    def answered() -> float:
        found = receiver.metrics.get("stoker_requests_total")
        points = found.sum.data_points if found else ()
        return sum(float(one.as_int) for one in points if values_of(one)["status"] == "200")

    wait_until(lambda: answered() == shown['stoker_requests_total{model="model",status="200"}'])
    assert receiver.metrics["stoker_requests_total"].sum.is_monotonic
    seconds = receiver.metrics["stoker_request_seconds"]
    (point,) = seconds.histogram.data_points
    assert seconds.unit == "s"
    assert point.count == shown['stoker_request_seconds_count{model="model"}']
    assert point.sum == shown['stoker_request_seconds_sum{model="model"}']
    assert point.bucket_counts[0] == shown['stoker_request_seconds_bucket{model="model",le="0.0005"}']
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    assert not point.HasField("min")
    (waiting,) = receiver.metrics["stoker_queue_rows"].gauge.data_points
    assert waiting.as_int == 0
    # Nothing that the page does not have.
    pages = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert set(receiver.metrics) <= pages


def test_a_collector_that_fails_or_goes_away_is_said_once_and_stops_nothing(traced: Traced) -> None:
    server, receiver = traced.server, traced.receiver
    receiver.status = 500
    asked = {"instances": [ONE]}

    def lines(words: str) -> bool:
        assert ask(server, PATH, asked, {}) == 200
        return bool(server.said(words))

    place = receiver.url
    wait_until(
        lambda: lines(
            f"OpenTelemetry: no traces are sent until {place} accepts them: Failed to export spans batch"
        )
    )
    wait_until(
        lambda: lines(
            f"OpenTelemetry: no metrics are sent until {place} accepts them: Failed to export metrics"
        )
    )
    seen = receiver.requests
    wait_until(lambda: lines("ready") and receiver.requests > seen)
    receiver.status = 200
    wait_until(lambda: lines(f"{place} accepts traces again") and lines(f"{place} accepts metrics again"))
    assert ask(server, PATH, asked, parent_of(300)) == 200
    wait_until(lambda: len(receiver.trace(f"{300:032x}")) == 4)
    assert (server.said("no traces are sent until"), server.said("no metrics are sent until")) == (1, 1)
    receiver.close()
    wait_until(lambda: lines("ready") and server.said("no traces are sent until") == 2)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(HANGS_S) == 0
    assert not [line for line in server.lines if "Traceback" in line or "opentelemetry." in line]
