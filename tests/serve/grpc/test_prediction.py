"""PredictionService, asked by TensorFlow Serving's own client."""

from __future__ import annotations

import asyncio
import re
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("orjson")
pytest.importorskip("uvicorn")
pytest.importorskip("grpc")
pytest.importorskip("tensorflow_serving")

import grpc
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    input_pb2,
    model_management_pb2,
    model_pb2,
    predict_pb2,
    prediction_log_pb2,
    regression_pb2,
)
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub
from tensorflow_serving.config import model_server_config_pb2

import stoker
from stoker.serve.grpc.messages import SERVING, make_pool
from stoker.serve.grpc.server import SERVICES, start_server
from stoker.serve.grpc.tensors import check_sizes, rows_of_examples
from stoker.serve.http.app import App
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.signature import Field
from tests.serve.bundles import rows
from tests.serve.http.asking import application, variant
from tests.support import HANGS_S

TOKEN = [("authorization", "Bearer secret")]
# Every call of one message, with its service.
CALLS = [
    (service.name, method.name)
    for service in SERVICES
    if not service.served_as
    for method in make_pool().FindServiceByName(service.name).methods
    if not method.client_streaming and not method.server_streaming
]


class Stub(PredictionServiceStub):
    """The services of one server, and its channel."""

    def __init__(self, channel: Any, app: App, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(channel)
        self.channel, self.app, self.loop = channel, app, loop
        self.models = ModelServiceStub(channel)


@contextmanager
def served(app: App, loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    """A channel to a server of the application."""
    starting = asyncio.run_coroutine_threadsafe(start_server(app.plane, "127.0.0.1:0"), loop)
    server, port = starting.result(HANGS_S)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    asyncio.run_coroutine_threadsafe(server.stop(None), loop).result(HANGS_S)


@pytest.fixture(scope="module")
def stub(pets: tuple[Any, Path]) -> Iterator[Any]:
    app, _ = application({"pets": pets[1]}, rows=50, token="secret", body_timeout=3)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with served(app, loop) as channel:
        yield Stub(channel, app, loop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(HANGS_S)
    app.models.close()


def request(count: int, **changed: Any) -> Any:
    made = predict_pb2.PredictRequest()
    made.model_spec.name = "pets"
    for name, array in {**rows(count), **changed}.items():
        made.inputs[name].CopyFrom(tf.make_tensor_proto(array))
    return made


def ask(stub: Any, made: Any, token: str = "secret") -> Any:
    return called(stub.Predict, made, token)


def called(call: Any, made: Any, token: str = "secret") -> Any:
    return call(made, timeout=HANGS_S, metadata=[("authorization", f"Bearer {token}")])


def test_the_answers_are_the_bundles(stub: Any, pets: tuple[Any, Path]) -> None:
    right = stoker.Predictor(pets[1]).predict(rows(3))
    found = ask(stub, request(3))
    np.testing.assert_allclose(tf.make_ndarray(found.outputs["scores"]), right["scores"], atol=1e-5)
    assert [one.decode() for one in tf.make_ndarray(found.outputs["label"])] == right["label"].tolist()
    assert found.model_spec.name == "pets"
    made = request(3)
    made.output_filter.append("label")
    made.model_spec.version.value = found.model_spec.version.value
    assert list(ask(stub, made).outputs) == ["label"]


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        ({"width": np.array(["x"])}, "INVALID_ARGUMENT", "'width': expected int32, got"),
        ({"width": np.array([True])}, "INVALID_ARGUMENT", "'width': expected int32, got True"),
        ({"other": np.zeros(1)}, "INVALID_ARGUMENT", "there is no input 'other'"),
        ({"numbers": np.zeros((2, 4))}, "INVALID_ARGUMENT", "different numbers of rows"),
    ],
)
def test_bad_input_is_a_code_and_one_line(stub: Any, change: dict[str, Any], code: str, line: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        ask(stub, request(1, **change))
    assert caught.value.code().name == code
    assert line in caught.value.details()


def test_models_versions_limits_and_the_token(stub: Any) -> None:
    def refused(made: Any, token: str = "secret") -> tuple[str, str]:
        with pytest.raises(grpc.RpcError) as caught:
            ask(stub, made, token)
        return caught.value.code().name, caught.value.details()

    made = request(1)
    made.model_spec.name = "cats"
    assert refused(made) == (
        "NOT_FOUND",
        "Servable not found for request: there is no model 'cats'; the server has 'pets'",
    )
    made = request(1)
    made.model_spec.version.value = 9
    assert refused(made)[0] == "NOT_FOUND"
    assert refused(request(51))[1].startswith("51 rows are too many")
    assert refused(request(1), "wrong")[0] == "UNAUTHENTICATED"
    made = request(1)
    made.inputs["numbers"].tensor_content = b"123"
    assert refused(made)[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("tensor", "line"),
    [
        ("dtype: DT_FLOAT float_val: 1 DIM: 2000000 DIM: 4", "2000000 rows are too many; the limit is 50"),
        ("dtype: DT_FLOAT float_val: 1 DIM: 1 DIM: 20000000", "takes 80000000 bytes; the limit is 16777216"),
        ("dtype: DT_FLOAT DIM: 1 DIM: 20000000", "takes 80000000 bytes"),
        ("dtype: DT_STRING string_val: 'x' DIM: 1 DIM: 20000000", "takes 160000000 bytes"),
        ("dtype: DT_FLOAT float_val: 1 DIM: -1 DIM: 4", "shape [-1, 4] has a negative size"),
        ("dtype: DT_FLOAT float_val: 1 DIM: 9223372036854775807 DIM: 4", "rows are too many"),
        ("dtype: DT_FLOAT float_val: 1 " + "DIM: 1 " * 70, "70 dimensions are too many"),
        ("dtype: DT_FLOAT float_val: 1 tensor_shape { unknown_rank: true }", "it has no shape"),
    ],
)
def test_a_small_message_does_not_become_a_large_array(stub: Any, tensor: str, line: str) -> None:
    made = request(1)
    sizes = "".join(f"dim {{ size: {one} }} " for one in re.findall(r"DIM: (-?\d+)", tensor))
    text = re.sub(r"DIM: \S+", "", tensor) + (f"tensor_shape {{ {sizes} }}" if sizes else "")
    made.inputs["numbers"].CopyFrom(text_format.Parse(text, tf.make_tensor_proto(0).__class__()))
    tracemalloc.start()
    try:
        with pytest.raises(grpc.RpcError) as caught:
            ask(stub, made)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert line in caught.value.details()
    assert peak < 4 << 20


def test_what_is_repeated_counts_as_if_it_were_sent() -> None:
    text = [Field("text", "string", (), "text")]
    tensor = tf.make_tensor_proto([b"x" * 1000])
    tensor.tensor_shape.dim[0].size = 2000
    with pytest.raises(RequestError, match="the inputs take 2015000 bytes; the limit is 1000000"):
        check_sizes(text, {"text": tensor}, ServerSettings({}, body_bytes=1_000_000))
    whole = tf.make_tensor_proto([b"x", b"y" * 900_000])
    check_sizes(text, {"text": whole}, ServerSettings({}, body_bytes=1_000_000))
    given = input_pb2.Input()
    held = given.example_list_with_context
    held.context.features.feature["text"].bytes_list.value.append(b"x" * 1000)
    for _ in range(2000):
        held.examples.add()
    with pytest.raises(RequestError, match=r"a context of 10\d\d bytes for each of 2,000 examples"):
        rows_of_examples(text, given, ServerSettings({}, body_bytes=1_000_000))


def test_many_tasks_are_many_rows(stub: Any) -> None:
    made = inference_pb2.MultiInferenceRequest(input=examples(26))
    for _ in range(2):
        made.tasks.add(method_name="tensorflow/serving/classify").model_spec.name = "pets"
    with pytest.raises(grpc.RpcError) as caught:
        called(stub.MultiInference, made)
    assert caught.value.details().startswith("52 rows are too many")


@pytest.mark.parametrize(("token", "code"), [("wrong", "UNAUTHENTICATED"), ("secret", "DEADLINE_EXCEEDED")])
def test_a_message_that_does_not_come_is_not_waited_for(stub: Any, token: str, code: str) -> None:
    """The token is checked before the message is there; who has it, has a while."""
    answered = threading.Event()

    def nothing() -> Iterator[bytes]:
        assert answered.wait(HANGS_S)
        yield from ()

    raw = stub.channel.stream_unary(f"/{SERVING}.PredictionService/Predict")
    with pytest.raises(grpc.RpcError) as caught:
        raw(nothing(), timeout=HANGS_S, metadata=[("authorization", f"bearer {token}")])
    answered.set()
    assert caught.value.code().name == code
    if token == "secret":
        assert caught.value.details() == "the message did not arrive within 3 s"


def test_so_many_calls_at_a_time(stub: Any, pets: tuple[Any, Path]) -> None:
    answered = threading.Event()

    def nothing() -> Iterator[bytes]:
        assert answered.wait(HANGS_S)
        yield from ()

    few = variant(stub.app, connections=1)
    with served(few, stub.loop) as channel:
        raw = channel.stream_unary(f"/{SERVING}.PredictionService/Predict")
        found = [raw.future(nothing(), timeout=HANGS_S, metadata=TOKEN) for _ in range(2)]
        codes = {one.code().name for one in found if one.exception(HANGS_S)}
        answered.set()
    assert "RESOURCE_EXHAUSTED" in codes


def examples(count: int, **changed: Any) -> Any:
    """The rows as TensorFlow's examples."""
    made = input_pb2.Input()
    given = rows(count)
    for row in range(count):
        feature = made.example_list.examples.add().features.feature
        feature["numbers"].float_list.value.extend(given["numbers"][row])
        feature["width"].int64_list.value.append(int(given["width"][row]))
        for name, value in changed.items():
            feature[name].CopyFrom(value)
    return made


def test_classify_and_regress(stub: Any, pets: tuple[Any, Path]) -> None:
    right = stoker.Predictor(pets[1]).predict(rows(3))
    made = classification_pb2.ClassificationRequest(input=examples(3))
    made.model_spec.name = "pets"
    found = called(stub.Classify, made)
    best = [one.classes[0] for one in found.result.classifications]
    assert [one.label for one in best] == right["label"].tolist()
    np.testing.assert_allclose([one.score for one in best], right["scores"].max(-1), atol=1e-5)
    assert [len(one.classes) for one in found.result.classifications] == [3, 3, 3]
    assert found.model_spec.name == "pets"
    # What all examples share stands in the context.
    shared = classification_pb2.ClassificationRequest()
    shared.model_spec.name = "pets"
    held = shared.input.example_list_with_context
    held.context.features.feature["width"].int64_list.value.append(1)
    held.examples.add().features.feature["numbers"].float_list.value.extend([1, 2, 3, 4])
    alone = stoker.Predictor(pets[1]).predict({"numbers": [1, 2, 3, 4], "width": 1})
    assert called(stub.Classify, shared).result.classifications[0].classes[0].label == alone["label"]
    regression = regression_pb2.RegressionRequest(input=examples(1))
    regression.model_spec.name = "pets"
    with pytest.raises(grpc.RpcError) as caught:
        called(stub.Regress, regression)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert "does not return one number per row" in caught.value.details()


def test_an_example_may_hold_an_image_file() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype("uint8")
    given = input_pb2.Input()
    feature = given.example_list.examples.add().features.feature["image"]
    feature.bytes_list.value.append(tf.io.encode_png(pixels).numpy())
    found = rows_of_examples([Field("image", "uint8", (6, 8, 3), "image")], given, ServerSettings({}))
    np.testing.assert_array_equal(found.arrays[0][0], pixels)


def test_several_models_at_once(stub: Any, pets: tuple[Any, Path]) -> None:
    made = inference_pb2.MultiInferenceRequest(input=examples(2))
    for _ in range(2):
        task = made.tasks.add(method_name="tensorflow/serving/classify")
        task.model_spec.name = "pets"
    found = called(stub.MultiInference, made)
    right = stoker.Predictor(pets[1]).predict(rows(2))["label"].tolist()
    for result in found.results:
        labels = [one.classes[0].label for one in result.classification_result.classifications]
        assert labels == right
    made.tasks[1].method_name = "guess"
    with pytest.raises(grpc.RpcError) as caught:
        called(stub.MultiInference, made)
    assert "method_name 'guess' must be" in caught.value.details()


def test_metadata_and_status(stub: Any, pets: tuple[Any, Path]) -> None:
    number = stoker.Predictor(pets[1]).bundle.version
    made = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    made.model_spec.name = "pets"
    found = called(stub.GetModelMetadata, made)
    assert found.model_spec.version.value == number
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert found.metadata["signature_def"].Unpack(signatures)
    inputs = signatures.signature_def["serving_default"].inputs
    assert inputs["width"].dtype == tf.int32.as_datatype_enum
    assert [one.size for one in inputs["numbers"].tensor_shape.dim] == [-1, 4]
    with pytest.raises(grpc.RpcError) as caught:
        called(stub.GetModelMetadata, get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["x"]))
    assert "metadata_field must be signature_def, got 'x'" in caught.value.details()
    asked = get_model_status_pb2.GetModelStatusRequest()
    asked.model_spec.name = "pets"
    (status,) = called(stub.models.GetModelStatus, asked).model_version_status
    assert (status.version, status.state) == (number, get_model_status_pb2.ModelVersionStatus.AVAILABLE)
    asked.model_spec.name = "cats"
    with pytest.raises(grpc.RpcError) as caught:
        called(stub.models.GetModelStatus, asked)
    assert caught.value.code().name == "NOT_FOUND"


def test_the_messages_are_numbered_as_the_clients() -> None:
    modules = (
        classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2, input_pb2, predict_pb2,
        regression_pb2, model_pb2, model_management_pb2, model_server_config_pb2, prediction_log_pb2,
    )  # fmt: skip
    theirs = {
        name: one for module in modules for name, one in module.DESCRIPTOR.message_types_by_name.items()
    }
    ours = make_pool().FindFileByName("tensorflow_serving.proto").message_types_by_name
    compared = sorted(ours.keys() & theirs.keys())
    for name in compared:
        fields = {one.name: (one.number, one.type) for one in ours[name].fields}
        # Theirs may have more: what only streams or large deployments use.
        assert fields.items() <= {one.name: (one.number, one.type) for one in theirs[name].fields}.items(), (
            name
        )
    assert len(compared) >= 30


@pytest.mark.parametrize(
    ("feature", "line"),
    [
        ("float_list { value: 1.5 }", "'width': expected int32, got 1.5"),
        ("bytes_list { value: 'x' }", "'width': expected int32, got b'x'"),
        ("int64_list { value: 1 value: 2 }", "'width': the input takes one value per row, got 2 values"),
    ],
)
def test_bad_examples_are_one_line(stub: Any, feature: str, line: str) -> None:
    value = text_format.Parse(feature, tf.train.Feature())
    made = classification_pb2.ClassificationRequest(input=examples(1, width=value))
    made.model_spec.name = "pets"
    with pytest.raises(grpc.RpcError) as caught:
        called(stub.Classify, made)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert line in caught.value.details()


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    call=st.sampled_from(CALLS),
    noise=st.binary(max_size=60),
    place=st.integers(0, 200),
    kind=st.sampled_from(["anything", "changed", "cut"]),
)
def test_whatever_is_sent_the_server_answers(
    stub: Any, call: Any, noise: bytes, place: int, kind: str
) -> None:
    service, name = call
    made = {
        "Predict": request(2),
        "Classify": classification_pb2.ClassificationRequest(input=examples(2)),
        "Regress": regression_pb2.RegressionRequest(input=examples(2)),
    }.get(name, get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"]))
    made.model_spec.name = "pets"
    data = made.SerializeToString()
    place %= len(data)
    sent = {
        "anything": noise,
        "changed": data[:place] + noise + data[place + len(noise) :],
        "cut": data[:place],
    }[kind]
    raw = stub.channel.unary_unary(f"/{service}/{name}")
    code, line = "OK", ""
    try:
        called(raw, sent)
    except grpc.RpcError as error:
        code, line = error.code().name, error.details() or ""
    assert code in ("OK", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED"), line
    assert "\n" not in line


def test_after_all_that_it_still_answers(stub: Any) -> None:
    assert ask(stub, request(1)).model_spec.name == "pets"
