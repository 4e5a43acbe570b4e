"""GRPCInferenceService, asked by Triton's own client; gRPC's health and reflection services."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("orjson")
pytest.importorskip("uvicorn")
pytest.importorskip("grpc")
pytest.importorskip("tritonclient.grpc")

import grpc
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

import stoker
from stoker.serve.grpc.messages import INFERENCE, make_pool, message_class
from tests.serve.bundles import LABELS, rows
from tests.serve.foreign.models import save
from tests.serve.grpc.channels import serve_grpc
from tests.serve.http.asking import application
from tests.support import HANGS_S


@pytest.fixture(scope="module")
def address(pets: tuple[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    half = save(tmp_path_factory.mktemp("half") / "model")
    app, _ = application({"pets": pets[1], "half": half}, rows=50)
    with serve_grpc(app) as found:
        yield found
    app.models.close()


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[Any]:
    made = triton.InferenceServerClient(address)
    yield made
    made.close()


def inputs_of(count: int) -> list[Any]:
    found = []
    for name, array in rows(count).items():
        one = triton.InferInput(name, list(array.shape), "FP32" if array.dtype == np.float32 else "INT32")
        one.set_data_from_numpy(array)
        found.append(one)
    return found


def text_inputs(*words: bytes) -> list[Any]:
    one = triton.InferInput("text", [len(words)], "BYTES")
    one.set_data_from_numpy(np.array(words, object))
    return [one]


def test_live_ready_and_metadata(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("pets")
    assert client.get_server_metadata().name == "stoker"
    found = client.get_model_metadata("pets", as_json=True)
    assert {one["name"]: (one["datatype"], one["shape"]) for one in found["inputs"]} == {
        "numbers": ("FP32", ["-1", "4"]),
        "width": ("INT32", ["-1"]),
    }
    config = client.get_model_config("pets", as_json=True)["config"]
    assert config["max_batch_size"] == 256
    assert [one["data_type"] for one in config["input"]] == ["TYPE_FP32", "TYPE_INT32"]
    assert {one.name for one in client.get_model_repository_index().models} == {"pets", "half"}
    with pytest.raises(InferenceServerException, match="there is no model 'cats'"):
        client.is_model_ready("cats") or client.get_model_metadata("cats")
    for absent in (lambda: client.load_model("pets"), client.get_log_settings):
        with pytest.raises(InferenceServerException, match="UNIMPLEMENTED"):
            absent()


def test_the_answers_are_the_bundles(client: Any, pets: tuple[Any, Path]) -> None:
    right = stoker.Predictor(pets[1]).predict(rows(3))
    found = client.infer("pets", inputs_of(3), request_id="seven")
    np.testing.assert_allclose(found.as_numpy("scores"), right["scores"], atol=1e-5)
    for way in ("gzip", "deflate"):
        packed = client.infer("pets", inputs_of(3), compression_algorithm=way)
        np.testing.assert_array_equal(packed.as_numpy("scores"), found.as_numpy("scores"))
    assert [one.decode() for one in found.as_numpy("label")] == right["label"].tolist()
    assert found.get_response().id == "seven"
    only = client.infer("pets", inputs_of(3), outputs=[triton.InferRequestedOutput("label")])
    assert [one.name for one in only.get_response().outputs] == ["label"]


def test_the_best_classes(client: Any, pets: tuple[Any, Path]) -> None:
    right = stoker.Predictor(pets[1]).predict(rows(2))
    wanted = [triton.InferRequestedOutput("scores", class_count=2)]
    found = client.infer("pets", inputs_of(2), outputs=wanted).as_numpy("scores")
    assert found.shape == (2, 2)
    for row, scores in zip(found, right["scores"], strict=True):
        value, place, label = row[0].decode().split(":")
        assert (int(place), label) == (int(np.argmax(scores)), LABELS[int(np.argmax(scores))])
        assert float(value) == pytest.approx(float(scores.max()), abs=1e-4)


def test_strings_and_other_signatures(client: Any) -> None:
    found = client.infer("half", text_inputs(b"ab", b"\xff"), parameters={"signature_name": "reverse"})
    assert found.as_numpy("words_bytes").tolist() == [b"ab!", b"\xff!"]
    assert found.as_numpy("length").tolist() == [2, 1]


def test_sizes_that_a_signature_declares_are_checked(client: Any) -> None:
    one = triton.InferInput("x", [1, 2], "FP32")
    one.set_data_from_numpy(np.ones((1, 2), np.float32))
    with pytest.raises(InferenceServerException, match=r"takes a tensor of shape \[\?, 1\], got \[1, 2\]"):
        client.infer("half", [one])


def test_typed_contents_are_answered_with_typed_contents(address: str) -> None:
    request = message_class(f"{INFERENCE}.ModelInferRequest")(model_name="half")
    request.parameters["signature_name"].string_param = "reverse"
    request.inputs.add(name="text", datatype="BYTES", shape=[2]).contents.bytes_contents.extend([b"a", b"bc"])
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            f"/{INFERENCE}.GRPCInferenceService/ModelInfer",
            type(request).SerializeToString,
            message_class(f"{INFERENCE}.ModelInferResponse").FromString,
        )
        found = {one.name: one.contents for one in call(request, timeout=HANGS_S).outputs}
        assert list(found["words_bytes"].bytes_contents) == [b"a!", b"bc!"]
        assert list(found["length"].int_contents) == [1, 2]
        request.inputs[0].shape[:] = [3]
        with pytest.raises(grpc.RpcError) as caught:
            call(request, timeout=HANGS_S)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert "shape [3] takes 3 values, got 2" in caught.value.details()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda one: one.inputs[0].shape.__setitem__(0, 99), "99 rows are too many"),
        (lambda one: setattr(one.inputs[0], "datatype", "FP13"), "datatype must be one of BOOL"),
        (lambda one: one.raw_input_contents.append(b""), "the request has 2 inputs, but raw contents for 3"),
        (
            lambda one: one.inputs[1].contents.int_contents.append(1),
            "'width' has both contents and raw_input_contents",
        ),
        (lambda one: one.outputs.add(name="no"), "there is no output 'no'"),
        (
            lambda one: one.inputs.add().CopyFrom(one.inputs[0]),
            "the request has 3 inputs, but raw contents for 2",
        ),
        (lambda one: setattr(one, "model_version", "9"), "has no version '9'"),
    ],
)
def test_what_does_not_fit_is_one_line(address: str, change: Any, line: str) -> None:
    request = message_class(f"{INFERENCE}.ModelInferRequest")(model_name="pets")
    for name, array in rows(2).items():
        datatype = "FP32" if array.dtype == np.float32 else "INT32"
        request.inputs.add(name=name, datatype=datatype, shape=array.shape)
        request.raw_input_contents.append(array.tobytes())
    change(request)
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{INFERENCE}.GRPCInferenceService/ModelInfer")(
            request.SerializeToString(), timeout=HANGS_S
        )
    assert caught.value.code().name in ("INVALID_ARGUMENT", "NOT_FOUND")
    assert line in caught.value.details()


def test_a_stream_answers_every_request_and_an_error_ends_only_itself(client: Any) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    try:
        for number in range(5):
            model = "gone" if number == 2 else "half"
            given = text_inputs(b"x" * number)
            client.async_stream_infer(
                model, given, request_id=str(number), parameters={"signature_name": "reverse"}
            )
        found = [answers.get(timeout=HANGS_S) for _ in range(5)]
    finally:
        client.stop_stream()
    assert "there is no model 'gone'" in str(found[2][1])
    kept = [result for result, error in found if error is None]
    assert [one.as_numpy("length").tolist() for one in kept] == [[0], [1], [3], [4]]


def test_statistics_count_what_was_answered(client: Any) -> None:
    def count() -> tuple[int, int]:
        (one,) = client.get_inference_statistics("half").model_stats
        return one.inference_stats.success.count, one.inference_count

    before = count()
    client.infer("half", text_inputs(b"a", b"b"), parameters={"signature_name": "reverse"})
    after = count()
    assert after[1] == before[1] + 2
    assert after[0] > before[0]


def test_the_messages_are_numbered_as_tritons() -> None:
    theirs = service_pb2.DESCRIPTOR.message_types_by_name
    ours = make_pool().FindFileByName("open_inference.proto").message_types_by_name
    compared = sorted(set(ours) & set(theirs))
    for name in compared:
        fields = {one.name: (one.number, one.type) for one in ours[name].fields}
        assert fields.items() <= {one.name: (one.number, one.type) for one in theirs[name].fields}.items(), (
            name
        )
    assert len(compared) >= 20


def test_health_and_reflection(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            response_deserializer=message_class("grpc.health.v1.HealthCheckResponse").FromString,
        )
        assert check(b"", timeout=HANGS_S).status == 1
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            response_deserializer=message_class("grpc.health.v1.HealthCheckResponse").FromString,
        )
        watching = watch(b"", timeout=HANGS_S)
        assert next(watching).status == 1
        watching.cancel()
        question = message_class("grpc.reflection.v1.ServerReflectionRequest")
        asked = [
            question(list_services=""),
            question(file_containing_symbol="inference.GRPCInferenceService"),
            question(file_containing_symbol="nowhere.Nothing"),
        ]
        for version in ("v1", "v1alpha"):
            tell = channel.stream_stream(
                f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                question.SerializeToString,
                message_class("grpc.reflection.v1.ServerReflectionResponse").FromString,
            )
            services, file, nothing = list(tell(iter(asked), timeout=HANGS_S))
            assert "tensorflow.serving.PredictionService" in {
                one.name for one in services.list_services_response.service
            }
            assert b"open_inference.proto" in file.file_descriptor_response.file_descriptor_proto[0]
            assert nothing.error_response.error_code == 5
