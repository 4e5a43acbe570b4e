"""The client of the serving benchmark, as a process of its own: connections that ask on, or requests at a rate.

python benchmarks/serve_client.py --client PORT PATH CONNECTIONS SECONDS
python benchmarks/serve_client.py --rate PORT PATH REQUESTS_PER_SECOND SECONDS
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import sys
import time
from typing import Any

_CONNECTIONS = 512
_AT_ONCE = 32


def client(port: int, path: str, clients: int, seconds: float) -> dict[str, Any]:
    """Keep so many connections asking, each one row after the other; what came of it."""
    body = json.dumps({"instances": [[0.5] * 100]}).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    request = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    chosen = selectors.DefaultSelector()
    state: dict[socket.socket, list[Any]] = {}
    for _ in range(clients):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        chosen.register(connection, selectors.EVENT_READ)
        state[connection] = [time.perf_counter(), b""]
        connection.send(request)
    times: list[float] = []
    refused: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        for key, _ in chosen.select(0.1):
            connection = key.fileobj  # type: ignore[assignment]
            one = state[connection]
            one[1] += connection.recv(65536)
            head, found, rest = one[1].partition(b"\r\n\r\n")
            if not found:
                continue
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(rest) < length:
                continue
            now = time.perf_counter()
            if head.startswith(b"HTTP/1.1 200"):
                times.append(now - one[0])
            else:
                refused.append(now - one[0])
            state[connection] = [now, b""]
            connection.send(request)
    return {"requests": len(times), "refused": sorted(refused), "times": sorted(times), "seconds": seconds}


def client_at_rate(port: int, path: str, rate: float, seconds: float) -> dict[str, Any]:
    """Requests that come by chance, so many a second, answered or not; times from when they came."""
    body = json.dumps({"instances": [[0.5] * 100]}).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    request = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    chance = random.Random(0)
    chosen = selectors.DefaultSelector()
    free: list[socket.socket] = []
    state: dict[socket.socket, list[Any]] = {}
    times: list[float] = []
    refused: list[float] = []
    for _ in range(_CONNECTIONS):
        made = socket.create_connection(("127.0.0.1", port))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setblocking(False)
        chosen.register(made, selectors.EVENT_READ)
        free.append(made)
    started = time.perf_counter()
    due, ends, skipped = started, started + seconds, 0
    while time.perf_counter() < ends:
        for _ in range(_AT_ONCE):  # then answers are looked at, however late it is
            if due > time.perf_counter():
                break
            if free:
                connection = free.pop()
                state[connection] = [due, b""]
                connection.send(request)
            else:
                skipped += 1
            due += chance.expovariate(rate)
        for key, _ in chosen.select(max(0.0, min(due - time.perf_counter(), 0.05))):
            connection = key.fileobj  # type: ignore[assignment]
            one = state[connection]
            one[1] += connection.recv(65536)
            head, found, rest = one[1].partition(b"\r\n\r\n")
            if not found or len(rest) < int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
                continue
            took = time.perf_counter() - one[0]
            (times if head.startswith(b"HTTP/1.1 200") else refused).append(took)
            free.append(connection)
    return {
        "requests": len(times), "refused": sorted(refused), "times": sorted(times), "seconds": seconds,
        "skipped": skipped,
    }  # fmt: skip


def main() -> None:
    """One run; what came of it as JSON."""
    kind, port, path, amount, seconds = sys.argv[1:]
    if kind == "--rate":
        print(json.dumps(client_at_rate(int(port), path, float(amount), float(seconds))))
    else:
        print(json.dumps(client(int(port), path, int(amount), float(seconds))))


if __name__ == "__main__":
    main()
