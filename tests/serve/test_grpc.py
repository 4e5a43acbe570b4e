"""PredictionService, asked by TensorFlow Serving's own client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
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
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

import stoker
from stoker.serve.grpc.service import started
from stoker.serve.http.supervising import Tls
from tests.serve.bundles import rows
from tests.serve.http.asking import application
from tests.support import HANGS_S


@pytest.fixture(scope="module")
def stub(pets: tuple[Any, Path]) -> Iterator[Any]:
    app, _ = application({"pets": pets[1]}, rows=50, token="secret")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(started(app, "127.0.0.1:0", Tls()), loop).result(HANGS_S)
    with grpc.insecure_channel(f"127.0.0.1:{server.bound}") as channel:
        yield PredictionServiceStub(channel)
    asyncio.run_coroutine_threadsafe(server.stop(None), loop).result(HANGS_S)
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
    return stub.Predict(made, timeout=HANGS_S, metadata=[("authorization", f"Bearer {token}")])


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
    assert refused(made) == ("NOT_FOUND", "there is no model 'cats'; there are pets")
    made = request(1)
    made.model_spec.version.value = 9
    assert refused(made)[0] == "NOT_FOUND"
    assert refused(request(51))[1].startswith("51 rows are too many")
    assert refused(request(1), "wrong")[0] == "UNAUTHENTICATED"
    made = request(1)
    made.inputs["numbers"].tensor_content = b"123"
    assert refused(made)[0] == "INVALID_ARGUMENT"
