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

from stoker.commands import main
from tests.support import HANGS_S, wait_until

ONE = {"numbers": [1, 2, 3, 4], "width": 1}


class Server:
    """A running server, and what it says."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "stoker", "serve", *words, "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
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
def server(pets: tuple[Any, Path]) -> Iterator[Server]:
    running = Server(str(pets[1]), "--workers", "2")
    wait_until(lambda: running.said("ready") == 2)
    yield running
    running.process.kill()
    running.process.wait()


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


def test_a_worker_that_dies_is_replaced_and_all_counts_stay(server: Server) -> None:
    for _ in range(20):
        assert server.ask("/v1/models/model:predict", {"instances": [ONE]})[0] == 200
    os.kill(children(server.process.pid)[0], signal.SIGKILL)
    wait_until(lambda: server.said("another one takes its place") == 1)
    # The other worker answers meanwhile.
    for _ in range(20):
        assert server.ask("/v1/models/model:predict", {"instances": [ONE]})[0] == 200
    wait_until(lambda: server.said("ready") == 3)
    assert 'stoker_requests_total{model="model",status="200"} 40' in server.ask("/metrics")[1].decode()


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
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(HANGS_S) == 0
    assert server.said("Traceback") == 0


def test_bad_options_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    place = str(tmp_path / "empty")
    for words, line in (
        ([str(tmp_path / "none")], "there is no directory"),
        ([f"a b={place}"], "'a b' is no name for a model"),
        ([place, place], "two models have the same name"),
        ([place, "--workers", "0"], "--workers 0 must be more than 0"),
        ([place, "--tls-cert", "x"], "HTTPS needs both --tls-cert and --tls-key"),
        ([place, "--host", "256.1.1.1"], "cannot listen on 256.1.1.1:8501"),
    ):
        assert main(["serve", *words]) == 2
        assert line in capsys.readouterr().err
