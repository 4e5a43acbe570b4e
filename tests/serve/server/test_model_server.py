"""`tensorflow_model_server` as a process, asked by the clients of TensorFlow Serving and Triton."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("grpc")
pytest.importorskip("tritonclient.http")
pytest.importorskip("tensorflow_serving")

import grpc
import tritonclient.http as triton
from tensorflow_serving.apis import get_model_status_pb2, model_management_pb2
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tritonclient.utils import InferenceServerException

from stoker.cli._model_server import main, make_parser
from tests.serve.bundles import rows
from tests.serve.foreign.models import save
from tests.support import HANGS_S, wait_until

pytestmark = pytest.mark.tensorflow
KSERVE = Path(__file__).parents[3] / ".venv-clients/bin/python"


class ModelServer:
    """A running server, and what it says."""

    def __init__(self, *words: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.grpc_port = free.getsockname()[1]
        command = [sys.executable, "-m", "stoker.cli._model_server", f"--port={self.grpc_port}", *words]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: "stoker: ready" in self.lines or self.process.poll() is not None)
        (self.http_port,) = [
            int(found) for line in self.lines for found in re.findall(r"serving .*:(\d+)$", line)
        ]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=HANGS_S)
        sent = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, sent, headers)
        response = connection.getresponse()
        return response.status, response.read()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, pets: tuple[Any, Path]) -> Path:
    found = tmp_path_factory.mktemp("models")
    save(found / "half" / "00000123")
    save(found / "other" / "1", plus=7.0)
    (found / "pets").symlink_to(pets[1])
    configs = "".join(
        f"config: {{ name: '{name}', base_path: '{found / name}', model_platform: 'tensorflow' }},"
        for name in ("half", "pets")
    )
    (found / "models.config").write_text(f"model_config_list: {{ {configs} }}")
    (found / "monitoring.config").write_text(
        "prometheus_config { enable: true, path: '/monitoring/metrics' }"
    )
    return found


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[ModelServer]:
    running = ModelServer(
        f"--model_config_file={place / 'models.config'}",
        f"--monitoring_config_file={place / 'monitoring.config'}",
        f"--grpc_socket_path={place / 'grpc.sock'}",
        "--grpc_channel_arguments=grpc.max_connection_age_ms=600000",
        "--enable_batching",
        "--tensorflow_session_parallelism=2",
    )
    yield running
    running.process.kill()
    running.process.wait()


@pytest.mark.slow
def test_it_serves_the_list_of_models(server: ModelServer) -> None:
    assert server.ask("/v1/models/half:predict", {"instances": [[2.0]]}) == (200, b'{"predictions":[[3.0]]}')
    status = json.loads(server.ask("/v1/models/half")[1])
    assert [one["version"] for one in status["model_version_status"]] == ["123"]
    assert b"# TYPE stoker_requests_total counter" in server.ask("/monitoring/metrics")[1]
    assert any("options that have no effect here: --enable_batching" in line for line in server.lines)


def test_kserves_question_whether_it_is_alive(server: ModelServer) -> None:
    assert server.ask("/") == (200, b'{"status":"alive"}')
    assert server.ask("/", accept="text/html")[1].startswith(b"<!")


def test_tritons_http_client(server: ModelServer) -> None:
    client = triton.InferenceServerClient(f"127.0.0.1:{server.http_port}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("pets")
    assert {one["name"] for one in client.get_model_repository_index()} == {"half", "pets"}
    assert client.get_model_config("half")["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}]
    given = []
    for name, array in rows(3).items():
        one = triton.InferInput(name, list(array.shape), "FP32" if array.dtype == np.float32 else "INT32")
        one.set_data_from_numpy(array)
        given.append(one)
    wanted = [triton.InferRequestedOutput("scores", class_count=2), triton.InferRequestedOutput("label")]
    for way in (None, "gzip", "deflate"):
        found = client.infer(
            "pets",
            given,
            outputs=wanted,
            request_compression_algorithm=way,
            response_compression_algorithm=way,
        )
        best = [row[0].decode().split(":")[2] for row in found.as_numpy("scores")]
        assert best == [one.decode() for one in found.as_numpy("label")]
    (counted,) = client.get_inference_statistics("pets")["model_stats"]
    assert counted["inference_count"] >= 9
    for absent in (lambda: client.load_model("half"), client.get_trace_settings, client.get_log_settings):
        with pytest.raises(InferenceServerException, match=r"404.* there is nothing at /v2/"):
            absent()
    client.close()


@pytest.mark.skipif(not KSERVE.is_file(), reason="KServe's client is not installed: make serving-clients")
def test_kserves_client(server: ModelServer) -> None:
    addresses = [f"http://127.0.0.1:{server.http_port}", f"127.0.0.1:{server.grpc_port}"]
    program = Path(__file__).with_name("kserve_client.py")
    done = subprocess.run(
        [KSERVE, program, *addresses], capture_output=True, text=True, check=False, timeout=HANGS_S
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("v1 predict") == {"predictions": [[3.0]]}
    assert found.pop("v2 infer") == found.pop("grpc infer") == [[3.0], [4.0]]
    assert set(found.values()) == {True}, found


def test_a_request_replaces_the_list_over_a_unix_socket(server: ModelServer, place: Path) -> None:
    with grpc.insecure_channel(f"unix:{place / 'grpc.sock'}") as channel:
        stub = ModelServiceStub(channel)
        request = model_management_pb2.ReloadConfigRequest()
        for name in ("half", "other", "pets"):
            request.config.model_config_list.config.add(
                name=name, base_path=str(place / name), model_platform="tensorflow"
            )
        assert stub.HandleReloadConfigRequest(request, timeout=HANGS_S).status.error_code == 0
        status = get_model_status_pb2.GetModelStatusRequest()
        status.model_spec.name = "other"
        assert stub.GetModelStatus(status, timeout=HANGS_S).model_version_status[0].state == 30
        request.config.model_config_list.config.add(name="gone", base_path=str(place / "gone"))
        with pytest.raises(grpc.RpcError) as caught:
            stub.HandleReloadConfigRequest(request, timeout=HANGS_S)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert "gone is neither a bundle nor a SavedModel" in caught.value.details()
    assert server.ask("/v1/models/other:predict", {"instances": [[0.0]]}) == (200, b'{"predictions":[[7.0]]}')


def test_sigterm_ends_it(server: ModelServer) -> None:
    os.kill(server.process.pid, signal.SIGTERM)
    assert server.process.wait(HANGS_S) == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "give either --model_base_path or --model_config_file"),
        (["--model_base_path=x", "--ssl_config_file=y"], "--ssl_config_file is not supported"),
        (["--model_base_path=x", "--nothing=1"], "unrecognized arguments: --nothing=1"),
        (["--model_base_path=x", "--grpc_channel_arguments=a"], "'a' must be name=value"),
        (["--model_config_file=nowhere"], "cannot read nowhere: No such file or directory"),
        (["--model_base_path=x", "--enable_model_warmup=maybe"], "'maybe' must be true or false"),
    ],
)
def test_bad_options_are_one_line(
    words: list[str],
    line: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert line in capfd.readouterr().err


def test_options_are_tensorflow_servings() -> None:
    args = make_parser().parse_args(
        ["--model_base_path=m", "--prefer_tflite_model", "--enable_model_warmup=false"]
    )
    assert (args.port, args.model_name) == (8500, "default")
    assert args.prefer_tflite_model
    assert not args.enable_model_warmup
