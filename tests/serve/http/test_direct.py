"""Plain requests go without ASGI; whatever way a request goes, and however it is cut up, its answer is the same."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
import threading
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
from tests.serve.http.asking import application, variant
from tests.support import HANGS_S

PREDICT = "/v1/models/pets:predict"
NO_HTTP = b'{"error":"Invalid HTTP request received."}'
ROW = {"numbers": [1, 2, 3, 4], "width": 1}
RIGHT = json.dumps({"instances": [ROW]}).encode()


class Usual(Protocol):
    """Everything goes uvicorn's way."""

    def _is_plain(self, headers: dict[bytes, bytes]) -> bool:
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

    def abort(self) -> None: ...


@pytest.fixture(scope="module")
def app(pets: tuple[Any, Path]) -> Iterator[App]:
    made, _ = application({"pets": pets[1]}, body_bytes=500, hosts=("x",))
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

    hasty = variant(app, body_timeout=1)

    async def left() -> bytes:
        config = uvicorn.Config(
            hasty, proxy_headers=False, lifespan="off", log_level="critical", ws="none", timeout_keep_alive=1
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
    turns, queue = 0, app.models.version("pets").signature().queue
    while turns < 20:
        await asyncio.sleep(0)
        turns = 0 if queue._busy else turns + 1


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
    ["Authorization: Bearer x"], ["Transfer-Encoding: gzip"], ["Content-Encoding: gzip"], ["Host: elsewhere"],
    ["Content-Encoding: gzip", "Connection: close"], ["Host: elsewhere", "Transfer-Encoding: chunked"],
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
    for other in (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        assert asyncio.run(sent(app, Protocol, other, [])).startswith(b"HTTP/1.1 400 ")


def test_a_client_who_leaves_is_forgotten(app: App) -> None:
    queue = app.models.version("pets").signature().queue
    calls: list[int] = []

    async def gone() -> bytes:
        made, written = connected(app, Protocol)
        made.data_received(request())
        assert queue.rows == 1
        made.connection_lost(None)
        await quiet(app)
        return written.data

    plain, queue._observe = queue._observe, lambda rows, seconds: calls.append(rows)
    before = app.metrics.total("stoker_requests_total", "pets", 'status="499"')
    assert asyncio.run(gone()) == b""
    queue._observe = plain
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


@pytest.mark.parametrize("piece", [1 << 20, 70_000])
def test_headers_that_come_at_once_are_refused_just_as_well(app: App, piece: int) -> None:
    data = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 12_000 + b"\r\n" + request()
    for protocol in (Protocol, Usual):
        found = asyncio.run(sent(app, protocol, data, list(range(0, len(data), piece))))
        assert found.startswith(b"HTTP/1.1 400 ")
        assert found.endswith(b'longer than 65536 bytes."}')
    # Much may come after a short head.
    assert b" 200 OK" in asyncio.run(sent(app, Protocol, request() * 400, []))


def test_trailers_are_not_kept(app: App) -> None:
    data = request("POST", PREDICT, RIGHT, "Transfer-Encoding: chunked")[:-2] + b"a: b\r\n" * 100_000

    async def trailing() -> int:
        made, _ = connected(app, Protocol)
        made.data_received(data)
        kept = len(made.headers)
        made.connection_lost(None)
        return kept

    assert asyncio.run(trailing()) < 10


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


def head(length: int, *more: str) -> bytes:
    lines = [f"POST {PREDICT} HTTP/1.1", "Host: x", f"Content-Length: {length}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("more", "changed", "status"),
    [
        ([], {"token": "secret"}, 401),
        (["Authorization: Basic secret"], {"token": "secret"}, 401),
        (["Host: rebound.example"], {}, 421),
        (["Content-Encoding: br"], {}, 415),
        ([], {"body_bytes": 399}, 413),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_is_refused_before_its_body_is_read(
    app: App, more: list[str], changed: dict[str, Any], status: int, chunked: bool
) -> None:
    """Nothing of it is held, its connection goes on, and the next request on it is answered."""
    made_app = variant(app, **changed)
    body = b"z" * 400

    async def refused() -> tuple[bytes, int, bytes]:
        made, written = connected(made_app, Protocol)
        if chunked:
            start = request("POST", PREDICT, body, "Transfer-Encoding: chunked", *more)[: -len(body) - 7]
        else:
            start = head(400, *more)
        made.data_received(start)
        for _ in range(10):
            await asyncio.sleep(0)
        early, written.data = written.data, b""
        made.data_received((body + b"\r\n0\r\n\r\n" if chunked else body)[:200])
        held = made_app.plane.held
        made.data_received((body + b"\r\n0\r\n\r\n" if chunked else body)[200:])
        made.data_received(request("GET", "/healthz", b""))
        await quiet(made_app)
        made.connection_lost(None)
        return early, held, written.data

    early, held, later = asyncio.run(refused())
    if chunked and status == 413:  # a body that does not say its length is refused once it is too long
        assert early == b""
        assert later.startswith(b"HTTP/1.1 413 ")
        assert b"HTTP/1.1 200 " in later
    else:
        assert early.startswith(b"HTTP/1.1 %d " % status), early
        assert held == 0
        assert later.startswith(b"HTTP/1.1 200 "), later
    assert made_app.plane.held == 0


def test_a_scheme_is_read_in_any_case_and_health_under_any_name(app: App) -> None:
    guarded = variant(app, token="secret")
    for scheme in ("Bearer", "bearer", "BEARER"):
        data = request("GET", "/v1/models/pets", b"", f"Authorization: {scheme} secret")
        assert asyncio.run(sent(guarded, Protocol, data, [])).startswith(b"HTTP/1.1 200 ")
    probe = b"GET /healthz HTTP/1.1\r\nHost: 10.0.0.7:8501\r\n\r\n"
    assert asyncio.run(sent(guarded, Protocol, probe, [])).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("extra", [[], ["Transfer-Encoding: chunked"]])
def test_bodies_together_take_no_more_than_they_may(app: App, extra: list[str]) -> None:
    small = variant(app, held_bytes=1000)
    body = json.dumps({"instances": [ROW], "more": "z" * 400}).encode()
    data = request("POST", PREDICT, body, *extra)

    async def crowd() -> tuple[list[bytes], int, int]:
        clients = [connected(small, Protocol) for _ in range(4)]
        for made, _ in clients:
            made.data_received(data[:-9])  # its end does not come
            for _ in range(5):
                await asyncio.sleep(0)
        held = small.plane.held
        for made, _ in clients:
            made.connection_lost(None)
        for _ in range(20):
            await asyncio.sleep(0)
        return [written.data for _, written in clients], held, small.plane.held

    found, held, left = asyncio.run(crowd())
    assert [one[:13] for one in found] == [b"", b"", b"HTTP/1.1 503 ", b"HTTP/1.1 503 "]
    assert b"retry-after: 1" in found[2]
    assert held <= 1000
    assert left == 0
    assert asyncio.run(sent(small, Protocol, data, [])).startswith(b"HTTP/1.1 200 ")
    assert small.plane.held == 0


def test_a_large_body_is_parsed_while_others_are_answered(app: App) -> None:
    roomy = variant(app, body_bytes=1 << 20)
    entered, go = threading.Event(), threading.Event()
    parse = roomy.plane.parse

    def slowly(inquiry: Any, question: Any) -> Any:
        entered.set()
        assert go.wait(HANGS_S)
        return parse(inquiry, question)

    roomy.plane.parse = slowly  # type: ignore[method-assign]
    body = json.dumps({"instances": [ROW], "more": "z" * 200_000}).encode()

    async def meanwhile() -> tuple[list[bytes], bytes]:
        found = []
        clients = [connected(roomy, kind) for kind in (Protocol, Usual)]
        for made, _ in clients:
            made.data_received(request("POST", PREDICT, body))
        while not entered.is_set():
            await asyncio.sleep(0)
        made, health = connected(roomy, Protocol)
        made.data_received(request("GET", "/healthz", b""))
        go.set()
        for _, written in clients:
            while not written.data.endswith(b"}"):
                await asyncio.sleep(0)
            found.append(written.data)
        return found, health.data

    found, health = asyncio.run(meanwhile())
    assert health.startswith(b"HTTP/1.1 200 ")
    assert [one[:13] for one in found] == [b"HTTP/1.1 200 "] * 2


def test_a_client_that_trickles_is_left(app: App) -> None:
    """Every byte that comes used to give it more time."""
    hasty = variant(app, body_timeout=0.5)

    async def trickle() -> bytes:
        made, written = connected(hasty, Protocol)
        made.data_received(head(400))
        while not written.closed:
            if made._direct is not None and len(made._direct.parts) < 300:
                made.data_received(b"z")
            await asyncio.sleep(0.01)
        made.connection_lost(None)
        return written.data

    assert asyncio.run(trickle()).startswith(b"HTTP/1.1 408 ")
    assert hasty.plane.held == 0


def test_connections_beyond_the_most_are_told_so(app: App) -> None:
    few = variant(app, connections=2)

    async def crowd() -> list[bytes]:
        config = uvicorn.Config(few, proxy_headers=False, lifespan="off", log_level="critical", ws="none")
        config.load()
        state = ServerState()
        found = []
        for _ in range(4):
            made, written = Protocol(config, state, {}), Written()
            made.connection_made(written)
            made.data_received(request("GET", "/healthz", b""))
            found.append(written.data[:13])
        return found

    answered, refused = b"HTTP/1.1 200 ", b"HTTP/1.1 503 "
    assert asyncio.run(crowd()) == [answered, answered, refused, refused]


@pytest.mark.parametrize("before", [0, 60])
def test_a_server_that_ends_answers_who_is_about_to_ask(app: App, before: int) -> None:
    """It used to close idle connections, and those with half of a request, at once."""

    async def ending() -> tuple[bytes, bool]:
        made, written = connected(app, Protocol)
        made.data_received(request()[:before])
        made.shutdown()
        await asyncio.sleep(0)
        assert not written.closed
        made.data_received(request()[before:])
        await quiet(app)
        return written.data, written.closed

    data, closed = asyncio.run(ending())
    assert data.startswith(b"HTTP/1.1 200 OK")
    assert b"connection: close" in data
    assert closed


def test_a_client_that_does_not_read_its_answers_is_left(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.serve.http.transport._LINGER_S", 0.1)
    hasty = variant(app, body_timeout=1)

    async def deaf() -> None:
        config = uvicorn.Config(
            hasty, proxy_headers=False, lifespan="off", log_level="critical", ws="none", timeout_keep_alive=1
        )
        config.load()
        loop, state = asyncio.get_running_loop(), ServerState()
        listening = await loop.create_server(lambda: Protocol(config, state, {}), "127.0.0.1", 0)
        with socket.create_connection(listening.sockets[0].getsockname()) as client:
            client.setblocking(False)
            await loop.sock_sendall(client, request("GET", "/", b"") * 1000)
            while not state.connections:
                await asyncio.sleep(0.01)
            while state.connections:
                await asyncio.sleep(0.01)
        listening.close()

    asyncio.run(asyncio.wait_for(deaf(), HANGS_S))
