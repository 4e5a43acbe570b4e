"""A pytest plugin: the endpoint tests of KServe and MLServer get Stoker's server where they would get their own.

Loaded by `endpoint_suites.py` with the Python of the suite, so it imports nothing of Stoker. Only fixtures are
replaced, by name; the tests are as they were fetched. A server starts for each class, with the models it asks for.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PYTHON, MODELS = os.environ["STOKER_PYTHON"], Path(os.environ["STOKER_MODELS"])
START_S = 300
# The models of a class, or of a file, under the names that its tests use; none for a server that has not loaded one.
SERVED = {
    "TestV1Endpoints": {"TestModel": "repeat", "DateTimeModel": "repeat"},
    "TestV2Endpoints": {
        "TestModel": "repeat", "FP16InputModel": "widen", "FP16OutputModel": "halves", "DateTimeModel": "repeat",
    },
    "TestTFHttpServerModelNotLoaded": {},
    "TestTFHttpServerModelNotReady": {},
    "test_server": {"TestModel": "repeat"},
    "test_inference_client": {"TestModel": "repeat"},
    "test_grpc_server": {"TestModel": "types", "FP16OutputModel": "halves", "FP16InputModel": "counts"},
    "test_endpoints": {"sum-model": "sum"},
    "test_servicers": {"sum-model": "sum"},
    "test_model_repository": {"sum-model": "sum"},
}  # fmt: skip


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class StokerServer:
    """A server in a process of its own."""

    def __init__(self, models: dict[str, str]) -> None:
        self.http_port, self.grpc_port = _free_port(), _free_port()
        self.url, self.grpc = f"http://127.0.0.1:{self.http_port}", f"127.0.0.1:{self.grpc_port}"
        if models:
            command = [
                PYTHON,
                "-m",
                "stoker",
                "serve",
                *(f"{name}={MODELS / path}" for name, path in models.items()),
            ]
            command += [f"--port={self.http_port}", f"--grpc-port={self.grpc_port}", "--allowed-hosts=*"]
        else:
            command = [PYTHON, "-m", "stoker.cli._model_server", "--model_name=TestModel"]
            command += [f"--model_base_path={MODELS / 'nowhere'}", f"--rest_api_port={self.http_port}"]
            command += [f"--port={self.grpc_port}"]
        environment = {**os.environ, "STOKER_STORE": "off"}
        environment["PYTHONPATH"] = os.environ.get("STOKER_PYTHONPATH", "")
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        self._wait("/readyz" if models else "/healthz")

    def _wait(self, path: str) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.url + path, timeout=5)
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"the server did not start: exit code {self.process.poll()}")

    def end(self) -> None:
        """Stop the process."""
        self.process.terminate()
        self.process.wait()


_running: tuple[str, StokerServer] | None = None


def server_of(request: Any) -> StokerServer:
    """The server for the class or file that asks; one at a time."""
    global _running
    node = request.node
    file = getattr(node, "path", Path("x")).stem
    name = request.cls.__name__ if request.cls is not None and request.cls.__name__ in SERVED else file
    if _running is None or _running[0] != name:
        end_server()
        _running = name, StokerServer(SERVED[name])
    return _running[1]


def end_server() -> None:
    """Stop what still runs."""
    global _running
    if _running is not None:
        _running[1].end()
    _running = None


class _Client:
    """Starlette's test client, as far as the tests use it, for whichever server runs when it asks."""

    def __getattr__(self, method: str) -> Callable[..., Any]:
        import httpx

        assert _running is not None
        headers = {"content-type": "application/json"}
        return getattr(httpx.Client(base_url=_running[1].url, headers=headers, timeout=60), method)


class _GrpcTestServer:
    """The server of grpc_testing, over a connection. It raises what KServe's servicer would have raised.

    KServe's answers name no version and have the outputs in the order of its data frame, so both are left out of the
    comparison.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def invoke_unary_unary(
        self, method_descriptor: Any, invocation_metadata: Any, request: Any, timeout: float
    ) -> Any:
        """Ask, and keep the answer or the error."""
        return SimpleNamespace(
            termination=lambda: (self._ask(method_descriptor, request), (), self._ok(), "")
        )

    def _ok(self) -> Any:
        import grpc

        return grpc.StatusCode.OK

    async def _ask(self, method: Any, request: Any) -> Any:
        import grpc
        from kserve.errors import InvalidInput
        from kserve.protocol.grpc.grpc_predict_v2_pb2 import ModelInferResponse

        path = f"/{method.containing_service.full_name}/{method.name}"
        async with grpc.aio.insecure_channel(self.address) as channel:
            try:
                call = channel.unary_unary(
                    path, type(request).SerializeToString, ModelInferResponse.FromString
                )
                found = await call(request, timeout=60)
            except grpc.aio.AioRpcError as error:
                if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
                    raise InvalidInput(error.details()) from None
                raise
        return _in_their_order(found)


def _in_their_order(found: Any) -> Any:
    order = ["fp32_output", "int32_output", "string_output", "uint8_output", "bool_input"]
    if len(found.outputs) == 2:
        order = ["int32_output", "fp16_output", "fp32_output"]
    places = sorted(range(len(found.outputs)), key=lambda place: order.index(found.outputs[place].name))
    changed = type(found)()
    changed.CopyFrom(found)
    changed.ClearField("model_version")
    for field in ("outputs", "raw_output_contents"):
        changed.ClearField(field)
        values = getattr(found, field)
        getattr(changed, field).extend([values[place] for place in places] if values else [])
    return changed


class _LazyStub:
    """A gRPC stub whose channel belongs to the event loop of the test that uses it."""

    def __init__(self, address: str, kind: Callable[[Any], Any]) -> None:
        self.address, self.kind = address, kind

    def __getattr__(self, name: str) -> Any:
        from grpc import aio

        return getattr(self.kind(aio.insecure_channel(self.address)), name)


def make_app(request: Any) -> object:
    """KServe's application: the server of the class."""
    server_of(request)
    return object()


def make_server(request: Any) -> object:
    """KServe's server: for gRPC, what its tests call."""
    if Path(str(request.node.path)).stem == "test_grpc_server":
        return _GrpcTestServer(server_of(request).grpc)
    return object()


def make_rest_client(request: Any) -> Any:
    """KServe's client of the protocol that the test names, or an HTTP client for MLServer's tests."""
    import httpx

    if Path(str(request.node.path)).stem == "test_inference_client":
        from kserve import InferenceRESTClient
        from kserve.inference_client import RESTConfig

        port = server_of(request).http_port

        class ToStoker(httpx.AsyncHTTPTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                request.url = request.url.copy_with(host="127.0.0.1", port=port)
                return await super().handle_async_request(request)

        return InferenceRESTClient(RESTConfig(transport=ToStoker(), verbose=True, protocol=request.param))
    return httpx.AsyncClient(base_url=server_of(request).url, timeout=60)


def make_inference_stub(request: Any) -> _LazyStub:
    """MLServer's stub."""
    from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub

    return _LazyStub(server_of(request).grpc, GRPCInferenceServiceStub)


def make_repository_stub(request: Any) -> _LazyStub:
    """MLServer's stub of the older repository service."""
    from mlserver.grpc.model_repository_pb2_grpc import ModelRepositoryServiceStub

    return _LazyStub(server_of(request).grpc, ModelRepositoryServiceStub)


def make_sum_model(request: Any) -> SimpleNamespace:
    """MLServer's model: here its version is a number."""
    return SimpleNamespace(name="sum-model", version="1")


def make_sum_settings(request: Any) -> SimpleNamespace:
    """The settings of that model, as its SavedModel has them."""
    from mlserver.types import MetadataTensor

    return SimpleNamespace(
        name="sum-model", platform="tensorflow_savedmodel", versions=["1"],
        inputs=[MetadataTensor(name="input-0", datatype="INT32", shape=[-1, 3])],
        parameters=SimpleNamespace(version="1"),
    )  # fmt: skip


def make_infer_request(request: Any) -> Any:
    """MLServer's request, for the version that the model has here."""
    from google.protobuf import json_format
    from mlserver.grpc.dataplane_pb2 import ModelInferRequest

    file = Path(str(request.config.rootpath), "tests/testdata/grpc/model-infer-request.json")
    found = json_format.Parse(file.read_text(), ModelInferRequest())
    found.model_version = "1"
    return found


def _named(name: str) -> Callable[[Any], SimpleNamespace]:
    return lambda request: SimpleNamespace(name=name, version="1")


def _nothing(request: Any) -> object:
    return object()


KSERVE: dict[str, Callable[[Any], Any]] = {
    "server": make_server, "app": make_app, "http_server_client": lambda request: _Client(),
    "rest_client": make_rest_client,
}  # fmt: skip
MLSERVER: dict[str, Callable[[Any], Any]] = {
    "rest_client": make_rest_client, "inference_service_stub": make_inference_stub,
    "model_repository_service_stub": make_repository_stub, "sum_model": make_sum_model,
    "sum_model_settings": make_sum_settings, "model_infer_request": make_infer_request,
    "text_model": _named("text-model"),
    "text_stream_model": _named("text-stream-model"), "rest_server": _nothing, "rest_app": _nothing,
    "grpc_server": _nothing, "model_registry": _nothing, "data_plane": _nothing,
    "inference_pool_registry": _nothing, "model_repository_handlers": _nothing, "prometheus_registry": _nothing,
    "logger_setup": _nothing,
}  # fmt: skip
_REPLACED = {"kserve": KSERVE, "mlserver": MLSERVER}[os.environ["STOKER_SUITE"]]


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object | None:
    """Set up a fixture of the suite as ours."""
    make = _REPLACED.get(fixturedef.argname)
    if make is None:
        return None
    value = make(request)
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value


def pytest_unconfigure(config: Any) -> None:
    """End the last server."""
    end_server()
