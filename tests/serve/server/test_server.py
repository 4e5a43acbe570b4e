"""`stoker serve` as a process: workers, the death of one, metrics of all, a graceful end."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.cli.serve import _hosts
from stoker.tracking.store.address import parse
from stoker.tracking.store.queries import open_reader
from tests.support import HANGS_S, run, wait_until

ONE = {"numbers": [1, 2, 3, 4], "width": 1}


class Server:
    """A running server, and what it says."""

    def __init__(self, *words: str, directory: Path | None = None) -> None:
        command = [sys.executable, "-m", "stoker", "serve", *words, "--port", "0"]
        self.directory = directory
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=directory)
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: bool(self.lines))
        self.port = int(re.findall(r":(\d+)$", self.lines[0])[0])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    def said(self, words: str) -> int:
        return sum(words in line for line in list(self.lines))

    def ask(self, path: str, body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_S)
        connection.request(
            "GET" if body is None else "POST", path, None if body is None else json.dumps(body)
        )
        response = connection.getresponse()
        return response.status, response.read()


@pytest.fixture(scope="module")
def server(pets: tuple[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("served")
    store = f"sqlite:///{place}/stoker.db"
    words = ["--workers", "2", "--ledger", "--record", "1", "--store", store]
    running = Server(str(pets[1]), *words, directory=place)
    wait_until(lambda: running.said("ready") == 2)
    yield running
    running.process.kill()
    running.process.wait()


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


class Client(threading.Thread):
    """Asks one row after the other on one connection, and makes another when it breaks."""

    def __init__(self, port: int, ended: threading.Event) -> None:
        super().__init__()
        self.answered = self.lost = 0
        self.odd: list[int] = []
        self._port, self._ended = port, ended

    def run(self) -> None:
        connection = self._connected()
        while not self._ended.is_set():
            try:
                connection.request("POST", "/v1/models/model:predict", json.dumps({"instances": [ONE]}))
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                self.lost += 1
                connection = self._connected()
                continue
            self.answered += 1
            if response.status != 200:
                self.odd.append(response.status)

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=HANGS_S)


@pytest.mark.slow
def test_a_worker_killed_under_load_loses_only_its_own_requests(server: Server) -> None:
    ended = threading.Event()
    clients = [Client(server.port, ended) for _ in range(6)]
    for client in clients:
        client.start()
    wait_until(lambda: all(client.answered > 5 for client in clients))
    os.kill(children(server.process.pid)[0], signal.SIGKILL)
    wait_until(lambda: server.said("starting another in its place") == 1)
    seen = [client.answered for client in clients]
    wait_until(lambda: all(client.answered > before for client, before in zip(clients, seen, strict=True)))
    wait_until(lambda: server.said("ready") == 3)
    ended.set()
    for client in clients:
        client.join(HANGS_S)
    # A client has one request under way: no more than that one is lost, and none is answered wrongly.
    assert max(client.lost for client in clients) <= 1
    assert [client.odd for client in clients] == [[]] * len(clients)
    # The counts of the one that died stay; a request may have been counted whose answer was lost.
    answered = sum(client.answered for client in clients)
    text = server.ask("/metrics")[1].decode()
    counted = int(re.findall(r'stoker_requests_total{model="model",status="200"} (\d+)', text)[0])
    assert answered <= counted <= answered + sum(client.lost for client in clients)


def test_the_ledger_accounts_for_all_of_a_request(server: Server) -> None:
    assert server.ask("/v1/models/model:predict", {"instances": [ONE]})[0] == 200
    status, body = server.ask("/ledger")
    assert status == 200
    told = json.loads(body)["model"]
    text = server.ask("/metrics")[1].decode()
    whole = float(re.findall(r"stoker_request_seconds_sum{.*} (\S+)", text)[0])
    assert sum(told["seconds"].values()) * told["requests"] == pytest.approx(whole, rel=0.02)
    assert min(told["seconds"].values()) >= 0
    assert told["seconds"]["engine"] > 0
    assert told["advice"]


def test_what_is_no_http_does_not_hurt(server: Server) -> None:
    import socket

    for rubbish in (
        b"\x16\x03\x01\0\0",
        b"POST / HTTP/1.1\r\nContent-Length: -4\r\n\r\n",
        b"GET /\r\n" * 100,
        b"\0" * 9000,
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_S) as raw:
            raw.sendall(rubbish)
            raw.shutdown(socket.SHUT_WR)
            raw.recv(1000)
    assert server.ask("/healthz") == (200, b'{"status":"ok"}')


def test_it_ends_gracefully(server: Server) -> None:
    assert server.ask("/v1/models/model:predict", {"instances": [ONE]})[0] == 200
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(HANGS_S) == 0
    assert server.said("Traceback") == 0
    # The ledger of all workers, and the server's run with what it answered.
    wait_until(lambda: server.said("us each") == 1)
    assert server.said("  engine ") == 1
    assert server.directory is not None
    recorded = list((server.directory / ".stoker" / "answers").iterdir())
    assert 1 <= len(recorded) <= 2  # whoever accepted a connection
    with open_reader(parse(f"sqlite:///{server.directory}/stoker.db")) as reader:
        (run,) = reader.runs()
        made = {(one.relation, one.kind) for one in reader.artifacts()}
    assert (run.kind, run.state) == ("serve", "finished")
    assert made == {("uses", "bundle"), ("makes", "answers")}


def test_it_ends_with_0_while_its_workers_begin(pets: tuple[Any, Path], tmp_path: Path) -> None:
    running = Server(str(pets[1]), "--workers", "2", "--store", "off", directory=tmp_path)
    wait_until(lambda: len(children(running.process.pid)) == 2)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(HANGS_S) == 0


def test_bad_options_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "bundle.json").write_text("{}")
    place = str(tmp_path / "empty")
    (tmp_path / "m.keras").touch()
    (tmp_path / "net.pb").touch()
    keras = str(tmp_path / "m.keras")
    for words, line in (
        (
            ["prices=" + keras],
            f"{keras} is a Keras file, not a bundle: export it first with stoker export {keras} bundle/",
        ),
        ([str(tmp_path / "net.pb")], "net.pb is a file, not the directory of a bundle"),
        (["bundle="], "'bundle=' has no path: give bundle=PATH"),
        ([""], "'' has no path"),
        ([str(tmp_path / "none")], "there is no directory"),
        ([str(tmp_path)], f"{tmp_path} is not a bundle: it has no bundle.json, and neither has"),
        ([f"a b={place}"], "'a b' is not a valid model name"),
        ([place, place], "two models have the same name"),
        ([place, "--workers", "0"], "--workers 0 must be more than 0"),
        ([place, "--max-connections", "0"], "--max-connections 0 must be more than 0"),
        ([place, "--max-in-flight", "5"], "--max-in-flight 5 must be at least --max-body, which is 16777216"),
        ([place, "--body-timeout", "nan"], "--body-timeout nan must be more than 0"),
        ([place, "--drain-delay", "-1"], "--drain-delay -1 must be between 0 and 600 seconds"),
        ([place, "--record", "2"], "--record 2.0 must be between 0 and 1"),
        ([place, "--record", "0.1"], "--record needs a store"),
        ([place, "--tls-cert", "x"], "HTTPS needs both --tls-cert and --tls-key"),
        ([place, "--host", "256.1.1.1"], "cannot listen on 256.1.1.1:8501"),
    ):
        assert main(["serve", *words]) == 2
        assert line in capsys.readouterr().err


def test_a_directory_without_a_bundle_is_refused_before_tensorflow_loads(tmp_path: Path) -> None:
    program = (
        "import sys; from stoker.cli import main; code = main(['serve', '.']); "
        "sys.exit('tensorflow' if 'tensorflow' in sys.modules else code)"
    )
    outcome = run([sys.executable, "-c", program], tmp_path)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("stoker: . is not a bundle: it has no bundle.json")


def test_the_bundle_of_a_run_is_served(pets: tuple[Any, Path], tmp_path: Path) -> None:
    (tmp_path / "pets-1").mkdir()
    (tmp_path / "pets-1" / "bundle").symlink_to(pets[1])
    (tmp_path / "latest").symlink_to("pets-1")
    running = Server(str(tmp_path / "latest"), "--store", "off", directory=tmp_path)
    try:
        wait_until(lambda: running.said("ready") == 1 or running.process.poll() is not None)
        status, answer = running.ask("/v1/models/model:predict", {"instances": [ONE]})
    finally:
        running.process.kill()
        running.process.wait()
    assert (status, list(json.loads(answer))) == (200, ["predictions"])


@pytest.mark.slow
def test_workers_that_cannot_do_what_was_asked_end_it(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "bundle.json").write_text("{}")
    store = f"sqlite:///{tmp_path}/stoker.db"
    running = Server(str(tmp_path / "bundle"), "--workers", "2", "--store", store, directory=tmp_path)
    assert running.process.wait(HANGS_S) == 2
    wait_until(lambda: running.said("does not describe a bundle") > 0)
    assert running.said("in its place") == 0
    with open_reader(parse(store)) as reader:
        (run,) = reader.runs()
    assert (run.state, run.exit_code) == ("failed", 2)


def test_which_names_a_server_is_asked_under() -> None:
    local = ("127.0.0.1", "localhost", "[::1]")
    assert {*_hosts("", "127.0.0.1", "")} == {*local}
    assert {*_hosts("", "::1", "")} == {*local}
    assert {*_hosts("", "127.0.0.2", "")} == {*local, "127.0.0.2"}
    assert (
        _hosts("", "127.0.0.1", "secret") == _hosts("", "0.0.0.0", "") == _hosts("*", "127.0.0.1", "") == ()
    )
    assert {*_hosts("Models.example.com, b:80", "0.0.0.0", "")} == {"models.example.com", "b"}
    assert {*_hosts("models.example.com", "127.0.0.1", "secret")} == {*local, "models.example.com"}
