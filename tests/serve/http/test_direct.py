"""Plain requests go without ASGI; whatever way a request goes, and however it is cut up, its answer is the same."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

import uvicorn
from uvicorn.server import ServerState

from stoker.serve.http.app import App
from stoker.serve.http.transport import Protocol
from tests.serve.http.asking import application
from tests.support import HANGS_S

PREDICT = "/v1/models/pets:predict"
NO_HTTP = b"Invalid HTTP request received."
ROW = {"numbers": [1, 2, 3, 4], "width": 1}
RIGHT = json.dumps({"instances": [ROW]}).encode()


class Usual(Protocol):
    """Everything goes uvicorn's way."""

    def _is_plain(self) -> bool:
        return False


class Written:
    """The end of a connection where answers come out."""

    def __init__(self) -> None:
        self.data, self.closed = b"", False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.data += data

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return None

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


@pytest.fixture(scope="module")
def app(pets: tuple[Any, Path]) -> Iterator[App]:
    made, _ = application({"pets": pets[1]}, body_bytes=500)
    yield made
    made.models.close()


def connected(app: App, protocol: type[Protocol]) -> tuple[Protocol, Written]:
    config = uvicorn.Config(
        app, proxy_headers=False, lifespan="off", log_level="critical", ws="none", date_header=False
    )
    config.load()
    made, written = protocol(config, ServerState(), {}), Written()
    made.connection_made(written)
    return made, written


@pytest.mark.parametrize("sent", [b"", b"POST", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n12"])
def test_a_client_that_does_not_go_on_is_left(app: App, sent: bytes) -> None:
    """A connection, a head or a body of which nothing more comes must not stay open for ever."""

    async def left() -> bytes:
        config = uvicorn.Config(
            app, proxy_headers=False, lifespan="off", log_level="critical", ws="none", timeout_keep_alive=1
        )
        config.load()
        loop = asyncio.get_running_loop()
        state = ServerState()
        listening = await loop.create_server(lambda: Protocol(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), HANGS_S)
        writer.close()
        listening.close()
        return answer

    answer = asyncio.run(left())
    assert answer.startswith(b"HTTP/1.1 408 ") if sent else not answer


def request(
    method: str = "POST", path: str = PREDICT, body: bytes = RIGHT, *more: str, version: str = "1.1"
) -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: x", *more]
    if any("chunked" in one for one in more):
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    else:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def quiet(app: App) -> None:
    """Until nothing is under way: a few turns of the loop in which the model has nothing to do."""
    turns, line = 0, app.models.version("pets").line
    while turns < 20:
        await asyncio.sleep(0)
        turns = 0 if line._busy else turns + 1


async def sent(app: App, protocol: type[Protocol], data: bytes, cuts: list[int]) -> bytes:
    """All that comes back for bytes that arrive in these pieces."""
    made, written = connected(app, protocol)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for first, last in itertools.pairwise(places):
        if written.closed:
            break
        made.data_received(data[first:last])
        await asyncio.sleep(0)
    await quiet(app)
    made.connection_lost(None)
    while made.tasks:
        await asyncio.sleep(0)
    return re.sub(rb"x-request-id: [0-9a-f]{12}-[0-9a-f]+", b"x-request-id: given", written.data)


BODIES = [RIGHT, b"", b"{}", b"nothing", b'{"instances": 1}', b"x" * 501, RIGHT[:-1], b"\xff\x00"]
PATHS = [
    PREDICT,
    "/v1/models/pets",
    "/v2/models/pets/infer",
    "/healthz",
    "/%2e",
    "/elsewhere?a=b",
    "*",
    "no/slash",
]
EXTRAS = [
    [], ["Connection: close"], ["Connection: keep-alive"], ["X-Request-ID: mine"], ["Transfer-Encoding: chunked"],
    ["Expect: 100-continue"], ["Connection: Upgrade", "Upgrade: websocket"], ["Content-Length: 7"], ["Bad header"],
    ["Authorization: Bearer x"], ["Transfer-Encoding: gzip"],
]  # fmt: skip

one_request = st.builds(
    lambda method, path, body, extra, version: request(method, path, body, *extra, version=version),
    st.sampled_from(["POST", "POST", "GET", "HEAD", "PUT", "BREW"]),
    st.sampled_from(PATHS) | st.just(PREDICT),
    st.sampled_from(BODIES) | st.just(RIGHT),
    st.sampled_from(EXTRAS) | st.just([]),
    st.sampled_from(["1.1", "1.1", "1.1", "1.0", "2.0"]),
)


def changed(data: bytes, place: int, byte: int) -> bytes:
    place %= len(data)
    return data[:place] + bytes([byte]) + data[place + 1 :]


some_request = one_request | st.builds(changed, one_request, st.integers(0, 999), st.integers(0, 255))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    requests=st.lists(some_request, min_size=1, max_size=4), cuts=st.lists(st.integers(0, 2000), max_size=4)
)
def test_both_ways_answer_alike_however_bytes_arrive(
    app: App, requests: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(requests)
    direct, usual = asyncio.run(sent(app, Protocol, data, cuts)), asyncio.run(sent(app, Usual, data, []))
    # What is no HTTP ends the connection at once; who had been answered before that depends on how the bytes came.
    if usual.endswith(NO_HTTP):
        assert b"connection: close" in direct
    else:
        assert direct == usual
    assert b"HTTP/1.1 5" not in direct


def test_a_plain_request_needs_no_task(app: App) -> None:
    async def both() -> tuple[bytes, int, int]:
        made, written = connected(app, Protocol)
        made.data_received(request()[:60])
        made.data_received(request()[60:])
        direct = len(made.tasks)
        await quiet(app)
        made.data_received(request("POST", PREDICT, RIGHT, "Transfer-Encoding: chunked"))
        usual = len(made.tasks)
        await quiet(app)
        made.connection_lost(None)
        return written.data, direct, usual

    data, direct, usual = asyncio.run(both())
    assert (direct, usual) == (0, 1)
    assert data.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize("piece", [1000, 7])
def test_who_would_like_another_protocol_is_answered_in_this_one(app: App, piece: int) -> None:
    """As Java's client asks, unless it is told not to."""
    wish = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB"]
    data = request("POST", PREDICT, RIGHT, *wish) + request()
    found = asyncio.run(sent(app, Protocol, data, list(range(0, len(data), piece))))
    assert found.count(b"HTTP/1.1 200 OK") == 2
    refused = asyncio.run(sent(app, Protocol, b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", []))
    assert refused.startswith(b"HTTP/1.1 400 ")


def test_a_client_who_leaves_is_forgotten(app: App) -> None:
    line = app.models.version("pets").line
    calls: list[int] = []

    async def gone() -> bytes:
        made, written = connected(app, Protocol)
        made.data_received(request())
        assert line.rows == 1
        made.connection_lost(None)
        await quiet(app)
        return written.data

    plain, line._ran = line._ran, lambda rows, seconds: calls.append(rows)
    before = app.metrics.total("stoker_requests_total", "pets", 'status="499"')
    assert asyncio.run(gone()) == b""
    line._ran = plain
    assert calls == []
    assert app.metrics.total("stoker_requests_total", "pets", 'status="499"') == before + 1


def test_a_server_that_ends_answers_what_it_has(app: App) -> None:
    async def ending() -> tuple[bytes, bool]:
        made, written = connected(app, Protocol)
        made.data_received(request())
        made.shutdown()
        assert not written.closed
        await quiet(app)
        return written.data, written.closed

    data, closed = asyncio.run(ending())
    assert data.startswith(b"HTTP/1.1 200 OK")
    assert b"connection: close" in data
    assert closed


def test_a_client_who_does_not_read_is_not_answered_on_and_on(app: App) -> None:
    async def deaf() -> int:
        made, written = connected(app, Protocol)
        made.pause_writing()
        for _ in range(50):
            made.data_received(request("GET", "/healthz", b""))
        await quiet(app)
        count = written.data.count(b"HTTP/1.1")
        made.connection_lost(None)
        await quiet(app)
        return count

    assert asyncio.run(deaf()) == 0


def test_headers_without_end_are_refused(app: App) -> None:
    async def endless() -> tuple[int, bytes]:
        made, written = connected(app, Protocol)
        made.data_received(b"GET / HTTP/1.1\r\n")
        count = 0
        while not written.closed:
            made.data_received(b"X: %b\r\n" % (b"y" * 1000))
            count += 1
        made.connection_lost(None)
        return count, written.data

    count, data = asyncio.run(endless())
    assert count < 70
    assert data.startswith(b"HTTP/1.1 400 ")
