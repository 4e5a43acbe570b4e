"""A full queue refuses without parsing, and everything that is not plain goes the usual way."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

from stoker.serve.batching import Job
from stoker.serve.http.admission import model_of
from stoker.serve.rows import InputRows
from tests.serve.bundles import rows

BODY = json.dumps({"instances": [{"numbers": [1, 2, 3, 4], "width": 1}]}).encode()


def request(
    path: str = "/v1/models/pets:predict", body: bytes = BODY, *more: str, length: int | None = None
) -> bytes:
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {size}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_plain_requests_are_known_by_their_bytes() -> None:
    assert model_of(request()) == "pets"
    assert model_of(request("/v2/models/a.b-c/infer")) == "a.b-c"
    assert model_of(request(body=b"")) == "pets"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"POST /v1/models/pets:predict HTTP/1.1\r\n",
        request().replace(b"POST", b"GET"),
        request().replace(b"HTTP/1.1", b"HTTP/1.0"),
        request("/v1/models/pets/versions/1:predict"),
        request("/elsewhere"),
        request(length=len(BODY) + 1),
        request(length=len(BODY) - 1),
        request() + request(),
        request("/v1/models/pets:predict", BODY, "Connection: close"),
        request("/v1/models/pets:predict", BODY, "Expect: 100-continue"),
        request("/v1/models/pets:predict", BODY, "Transfer-Encoding: chunked"),
        request("/v1/models/pets:predict", BODY, "X-Request-ID: 7"),
        request("/v1/models/pets:predict", BODY, "Content-Length: 3"),
        request("/v1/models/pets:predict", BODY, "Content-Length : 3"),
        request("/v1/models/pets:predict", BODY, "X: 1", " folded"),
        request().replace(b"Content-Length: ", b"Content-Length: +"),
    ],
)
def test_all_else_is_parsed(data: bytes) -> None:
    assert model_of(data) is None


class Written:
    """The end of a connection where answers come out."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> Any:
        return None

    def close(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Waiting(Job):
    """Two rows in a queue."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(InputRows([given["numbers"], given["width"]], 2, False), 60)
        self.settled = asyncio.Event()

    def settle(self) -> None:
        self.settled.set()


def test_a_full_queue_refuses_at_once_and_answers_again_when_it_is_free(pets: tuple[Any, Path]) -> None:
    import uvicorn
    from uvicorn.server import ServerState

    from stoker.serve.http.transport import Protocol
    from tests.serve.http.asking import application

    app, _ = application({"pets": pets[1]}, queue=2)
    app.models.version("pets").signature().queue._seconds = 10.0  # a quick model would make room by answering
    given = rows(2)

    async def crowd() -> tuple[bytes, bytes, bytes]:
        config = uvicorn.Config(app, proxy_headers=False, lifespan="off", log_level="critical")
        config.load()
        protocol = Protocol(config, ServerState(), {})
        written = Written()
        protocol.connection_made(written)
        waiting = Waiting(given)
        app.models.version("pets").signature().queue.put(waiting)
        protocol.data_received(request())
        await asyncio.sleep(0)
        refused, written.data = written.data, b""
        assert not protocol.tasks, "nothing was parsed for it"
        await waiting.settled.wait()
        protocol.data_received(request()[:50])  # in two pieces
        protocol.data_received(request()[50:])
        while b"predictions" not in written.data:
            await asyncio.sleep(0)
        answered, written.data = written.data, b""
        again = Waiting(given)
        app.models.version("pets").signature().queue.put(again)
        protocol.data_received(request("/v1/models/pets:predict", BODY, "X-Request-ID: mine"))
        while b"mine" not in written.data:
            await asyncio.sleep(0)
        await again.settled.wait()
        protocol.connection_lost(None)
        return refused, answered, written.data

    refused, answered, named = asyncio.run(crowd())
    head, _, body = refused.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"retry-after: 1" in head
    assert f"content-length: {len(body)}".encode() in head
    assert json.loads(body) == {"error": "Queue full (2 rows). Retry later, or raise --queue."}
    assert answered.startswith(b"HTTP/1.1 200 OK")
    # It was parsed, for its name, and refused all the same.
    assert named.startswith(b"HTTP/1.1 429 ")
    assert b"x-request-id: mine" in named
    assert 'stoker_requests_total{model="pets",status="429"} 2' in app.metrics.text()
    app.models.close()
