"""One run of MLPerf LoadGen against a server that answers over HTTP, as a process of its own.

    python benchmarks/loadgen_client.py '{"scenario": "Server", "port": 8501, "path": "/", "rows": "rows.npz", ...}'

LoadGen decides what is asked when, takes the times and says whether the run is VALID. A sample is one row in a request
of its own; the requests are spelled out before the run begins. Every answer is kept, and compared afterwards.
"""

from __future__ import annotations

import json
import re
import select
import socket
import sys
import tempfile
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mlperf_loadgen as lg  # type: ignore[import-untyped, import-not-found, unused-ignore]
import numpy as np

_CONNECTIONS: Final = {"SingleStream": 1, "Offline": 64, "Server": 256}
_OFF: Final = 1e-4
_RATES: Final = ("Completed samples per second", "Samples per second", "QPS w/ loadgen overhead")


@dataclass(frozen=True)
class Order:
    """What is to be measured.

    Attributes:
        scenario: SingleStream, Offline or Server.
        port, path: where the server answers.
        rows: a file with the rows, and the answers that the model gives in this process's place.
        seconds: how long the run lasts at least.
        rate: the requests a second that are asked (Server) or expected (Offline).
        bound_ms: what 99 % of the answers must keep for a Server run to be VALID.
    """

    scenario: str
    port: int
    path: str
    rows: str
    seconds: float
    rate: float = 1000.0
    bound_ms: float = 15.0


class Asker:
    """Asks over so many connections, one request at a time on each; requests that find none free wait in line."""

    def __init__(self, order: Order, requests: list[bytes]) -> None:
        self._requests = requests
        self.answers: list[tuple[int, bytes]] = []
        self._free: list[socket.socket] = []
        self._line: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()
        self._epoll = select.epoll()
        self._by_file: dict[int, socket.socket] = {}
        self._asked: dict[int, tuple[int, int]] = {}
        for _ in range(_CONNECTIONS[order.scenario]):
            made = socket.create_connection(("127.0.0.1", order.port))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._epoll.register(made, select.EPOLLIN)
            self._by_file[made.fileno()] = made
            self._free.append(made)
        threading.Thread(target=self._read_answers, daemon=True).start()

    def issue(self, samples: list[Any]) -> None:
        """Ask these samples; LoadGen calls this."""
        for one in samples:
            with self._lock:
                if not self._free:
                    self._line.append((one.id, one.index))
                    continue
                connection = self._free.pop()
            self._send(connection, (one.id, one.index))

    def _send(self, connection: socket.socket, sample: tuple[int, int]) -> None:
        self._asked[connection.fileno()] = sample
        connection.sendall(self._requests[sample[1]])

    def _read_answers(self) -> None:
        parts: dict[int, bytes] = {}
        while True:
            for file, _ in self._epoll.poll():
                connection = self._by_file[file]
                given = connection.recv(65536)
                data = parts.pop(file, b"") + given
                head, found, body = data.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) if found else 1
                if len(body) < length:
                    if not given:  # LoadGen waits for ever for what was lost
                        sys.exit("the server closed a connection")
                    parts[file] = data
                    continue
                number, index = self._asked[file]
                lg.QuerySamplesComplete([lg.QuerySampleResponse(number, 0, 0)])
                self.answers.append((index, body if head.startswith(b"HTTP/1.1 200") else b""))
                with self._lock:
                    if not self._line:
                        self._free.append(connection)
                        continue
                    sample = self._line.popleft()
                self._send(connection, sample)


def spell_requests(path: str, rows: Any) -> list[bytes]:
    """Return a request for each row."""
    found = []
    for row in rows:
        body = json.dumps({"instances": [[round(float(one), 4) for one in row]]}).encode()
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        found.append("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
    return found


def settings_of(order: Order) -> Any:
    """Return LoadGen's settings: its defaults, but for the shorter duration."""
    found = lg.TestSettings()
    found.scenario = getattr(lg.TestScenario, order.scenario)
    found.mode = lg.TestMode.PerformanceOnly
    found.min_duration_ms = int(1000 * order.seconds)
    if order.scenario == "SingleStream":
        found.single_stream_expected_latency_ns = 20_000  # so that enough requests are drawn beforehand
    else:
        found.server_target_qps = found.offline_expected_qps = order.rate
    found.server_target_latency_ns = int(1e6 * order.bound_ms)
    return found


def count_wrong(answers: list[tuple[int, bytes]], wanted: Any) -> int:
    """Count the answers that are not those of the model."""
    wrong = 0
    for index, body in answers:
        try:
            wrong += not np.allclose(json.loads(body)["predictions"][0], wanted[index], rtol=0, atol=_OFF)
        except (ValueError, KeyError):
            wrong += 1
    return wrong


def read_summary(text: str) -> dict[str, Any]:
    """Return what LoadGen says: whether the run is VALID, and its figures."""

    def figure(words: str) -> float:
        found = re.search(rf"^{re.escape(words)} *: ([\d.e+]+)", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    return {
        "valid": bool(re.search(r"^Result is : VALID", text, re.MULTILINE)),
        "rate": next(filter(None, map(figure, _RATES)), 0.0),
        **{
            name: figure(f"{part} percentile latency (ns)") / 1e6
            for name, part in {"p50": "50.00", "p99": "99.00"}.items()
        },
    }


def measure(order: Order) -> dict[str, Any]:
    """One run; what came of it."""
    with np.load(order.rows) as file:
        rows, wanted = file["rows"], file["answers"]
    asker = Asker(order, spell_requests(order.path, rows))
    system = lg.ConstructSUT(asker.issue, lambda: None)
    library = lg.ConstructQSL(len(rows), len(rows), lambda _: None, lambda _: None)
    logs = lg.LogSettings()
    with tempfile.TemporaryDirectory() as directory:
        logs.log_output.outdir = directory
        lg.StartTestWithLogSettings(system, library, settings_of(order), logs)
        text = Path(directory, "mlperf_log_summary.txt").read_text()
    found = {
        **read_summary(text),
        "requests": len(asker.answers),
        "wrong": count_wrong(asker.answers, wanted),
    }
    lg.DestroyQSL(library)
    lg.DestroySUT(system)
    return found


if __name__ == "__main__":
    sys.setswitchinterval(0.0002)  # LoadGen's thread asks while another reads answers
    print(json.dumps(measure(Order(**json.loads(sys.argv[1])))))
