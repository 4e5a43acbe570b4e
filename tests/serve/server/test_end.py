"""`stoker serve` under trouble: a log that fails, a port that is taken, a parent that is killed, an end under load."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")
pytest.importorskip("grpc")

from stoker.cli import main
from tests.serve.server.test_server import ONE, children
from tests.support import HANGS_S, wait_until

PREDICT = "/v1/models/model:predict"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def ask(port: int, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS_S)
    method = "GET" if body is None else "POST"
    connection.request(method, path, None if body is None else json.dumps(body))
    response = connection.getresponse()
    found = response.status, json.loads(response.read())
    connection.close()
    return found


class Logged:
    """A server whose log is a file."""

    def __init__(self, directory: Path, *words: str) -> None:
        self.log = directory / "log"
        command = [sys.executable, "-m", "stoker", "serve", *words, "--port", "0"]
        with open(self.log, "wb") as file:
            self.process = subprocess.Popen(command, stderr=file, cwd=directory)
        wait_until(lambda: b"ready" in self.log.read_bytes() or self.process.poll() is not None)
        self.port = int(re.findall(rb"127\.0\.0\.1:(\d+)", self.log.read_bytes())[0])

    def ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        return ask(self.port, path, body)

    def limit_files(self, size: int) -> None:
        """How long a file may become: with 0, writing fails as on a full disk."""
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, hard))


@pytest.fixture(scope="module")
def grpc_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def served(
    pets: tuple[Any, Path], grpc_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Logged]:
    place = tmp_path_factory.mktemp("logged")
    shutil.copytree(pets[1], place / "models" / "1")
    words = [str(place / "models"), "--access-log", "--grpc-port", str(grpc_port), "--drain-delay", "3"]
    running = Logged(place, *words)
    yield running
    running.process.kill()
    running.process.wait()


def versions(server: Logged) -> list[str]:
    return [one["version"] for one in server.ask("/v1/models/model")[1]["model_version_status"]]


@pytest.mark.slow
def test_a_full_disk_stops_neither_answers_nor_new_bundles(served: Logged, pets: tuple[Any, Path]) -> None:
    served.limit_files(0)
    assert served.ask(PREDICT, {"instances": [ONE]})[0] == 200
    assert served.ask(PREDICT, {"instances": [{}]})[0] == 400
    assert served.ask("/healthz") == (200, {"status": "ok"})
    shutil.copytree(pets[1], served.log.parent / "fresh")
    (served.log.parent / "fresh").rename(served.log.parent / "models" / "2")
    wait_until(lambda: versions(served) == ["2", "1"])
    served.limit_files(resource.RLIM_INFINITY)
    served.ask("/healthz")
    wait_until(lambda: b"log lines could not be written" in served.log.read_bytes())


def test_a_second_server_does_not_join_a_port(
    served: Logged, grpc_port: int, pets: tuple[Any, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", str(pets[1]), "--port", "0", "--grpc-port", str(grpc_port)]
    assert main(words) == 2
    assert f"cannot listen on 127.0.0.1:{grpc_port} for gRPC" in capfd.readouterr().err
    assert main(["serve", str(pets[1]), "--port", str(served.port)]) == 2
    assert f"cannot listen on 127.0.0.1:{served.port}" in capfd.readouterr().err


class Client(threading.Thread):
    """Asks on and on until nobody listens any more; what was sent must be answered."""

    def __init__(self, port: int, keeps: bool) -> None:
        super().__init__()
        self._port, self._keeps = port, keeps
        self.answered = 0
        self.lost: list[str] = []

    def run(self) -> None:
        body = json.dumps({"instances": [ONE]})
        headers = {} if self._keeps else {"Connection": "close"}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=HANGS_S)
        while True:
            try:
                if connection.sock is None:
                    connection.connect()
            except OSError:
                return  # refused: nothing was sent
            try:
                connection.request("POST", PREDICT, body, headers)
                response = connection.getresponse()
                response.read()
                assert response.status == 200, response.status
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.lost.append(repr(error))
                return
            self.answered += 1


def test_no_request_is_lost_when_the_server_ends_under_load(served: Logged) -> None:
    clients = [Client(served.port, keeps=number % 2 == 0) for number in range(8)]
    for one in clients:
        one.start()
    wait_until(lambda: all(one.answered > 20 for one in clients))
    served.process.send_signal(signal.SIGTERM)
    # It says so, and goes on for a while, before it stops to listen.
    wait_until(lambda: ask(served.port, "/readyz")[0] == 503)
    assert ask(served.port, PREDICT, {"instances": [ONE]})[0] == 200
    assert served.process.wait(HANGS_S) == 0
    for one in clients:
        one.join(HANGS_S)
    assert [one.lost for one in clients] == [[]] * len(clients)


@pytest.mark.slow
def test_workers_answer_without_a_log_and_end_when_their_parent_is_killed(
    pets: tuple[Any, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    command = [sys.executable, "-m", "stoker", "serve", str(pets[1]), "--workers", "2", "--access-log"]
    reading, writing = os.pipe()
    process = subprocess.Popen([*command, "--port", "0"], stderr=writing, cwd=tmp_path)
    request.addfinalizer(process.kill)
    os.close(writing)
    said = ""
    with open(reading) as reader:  # and then it is gone
        while said.count("ready") < 2:
            said += reader.readline()
    port = int(re.findall(r"127\.0\.0\.1:(\d+)", said)[0])
    workers = children(process.pid)
    for _ in range(20):
        assert ask(port, PREDICT, {"instances": [ONE]})[0] == 200
    assert ask(port, PREDICT, {"instances": [{}]})[0] == 400
    assert ask(port, "/healthz")[0] == 200
    process.kill()
    process.wait(HANGS_S)
    wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in workers))
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/healthz")


@pytest.mark.tensorflow
def test_an_open_server_without_a_token_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bundle.json").write_text("{}")
    words = ["serve", str(tmp_path), "--port", "0"]
    assert main([*words, "--host", "0.0.0.0"]) == 2
    told = "warning: anyone who can reach 0.0.0.0 can use these models: set STOKER_SERVE_TOKEN"
    assert told in capfd.readouterr().err
    assert main([*words, "--host", "0.0.0.0", "--token", "secret"]) == 2
    assert main(words) == 2
    assert "warning" not in capfd.readouterr().err
