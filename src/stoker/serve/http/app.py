"""The HTTP application: it routes each path, and carries out one exchange of a request for a response.

`Exchange` takes a request to the data plane and its answer back, over any transport: `direct` for plain requests, ASGI
(`App.__call__`) for all others. It is written against ASGI itself, as a framework's routing would cost more than a
small model.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from stoker.serve.batching import BusyError, now
from stoker.serve.http import open_inference, tensorflow_rest
from stoker.serve.http.admission import Admission, decompress, model_of
from stoker.serve.http.messages import HttpRequest, HttpResponse, Routed, answer, refuse
from stoker.serve.http.openapi import OpenApiWriter
from stoker.serve.http.operators import list_operator_routes
from stoker.serve.http.routing import ModelPath, Route, Router
from stoker.serve.http.schemas import of_json
from stoker.serve.plane.answering import DataPlane, set_result
from stoker.serve.plane.errors import ClientLeftError, RequestError, explain
from stoker.serve.plane.ledger import Spent

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_REFUSED = b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n"


class Exchange:
    """One request and its response. A transport derives from this class to send the response."""

    __slots__ = ("app", "request")

    def __init__(self, app: App, request: HttpRequest) -> None:
        self.app, self.request = app, request

    def send(self, response: HttpResponse) -> None:
        """Send the response, or nothing if its status is 499, which means that the client has left."""
        raise NotImplementedError

    def start(self) -> bool:
        """Answer a request that has arrived completely. Return whether its model may take long."""
        app, request = self.app, self.request
        try:
            routed = app.route(request)
        except Exception as error:  # noqa: BLE001 - one request must not take the server with it
            self.finish(app.plane.explain(error, request))
            return False
        if isinstance(routed, HttpResponse):
            self.finish(routed)
            return False
        app.plane.submit(request, routed, self.finish)
        return routed.version.is_slow

    def finish(self, found: HttpResponse | RequestError) -> None:
        """Count the request, and send what was found for it."""
        response = refuse(found) if isinstance(found, RequestError) else found
        self.app.plane.release(self.request)
        self.app.count(self.request, response.status)
        self.send(response)


class _AwaitedExchange(Exchange):
    """An exchange whose caller awaits the response."""

    __slots__ = ("response",)

    def __init__(self, app: App, request: HttpRequest) -> None:
        super().__init__(app, request)
        self.response: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

    def send(self, response: HttpResponse) -> None:
        set_result(self.response, response)


class App:
    """The server, as ASGI calls it."""

    def __init__(self, plane: DataPlane) -> None:
        self.plane, self.settings = plane, plane.settings
        self.models, self.metrics = plane.models, plane.metrics
        self.admission = Admission(plane.settings)
        document = Route(
            "GET", "/openapi.json", "This document", self._tell_document, of_json({"type": "object"})
        )
        self._router = Router(
            (*tensorflow_rest.ROUTES, *open_inference.ROUTES, *list_operator_routes(plane.settings), document)
        )
        # A refused client need not be identified.
        self._refuses_unparsed = not plane.settings.access_log and not plane.settings.token
        # Ids that no other worker gives, without asking the system for each one.
        self._prefix, self._ids = secrets.token_hex(6), 0

    def _next_id(self) -> str:
        self._ids += 1
        return f"{self._prefix}-{self._ids:x}"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; uvicorn passes on nothing but HTTP (`running`)."""
        request = self.begin(scope["method"], scope["path"], dict(scope["headers"]))
        exchange = _AwaitedExchange(self, request)
        try:
            try:
                self.admission.check(request)
                request.body = await self._read_body(request, receive)
            except RequestError as error:
                exchange.finish(error)
            else:
                if exchange.start():
                    await _wait_or_leave(exchange, receive)
            response = await exchange.response
        finally:
            request.has_left = not exchange.response.done() or exchange.response.cancelled()
        if response.status == 499:
            return
        headers = [
            (b"content-type", response.kind),
            (b"content-length", str(len(response.body)).encode()),
            (b"x-request-id", request.id.encode("latin-1")),
            *response.headers,
        ]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    def begin(self, method: str, path: str, headers: dict[bytes, bytes]) -> HttpRequest:
        """Start a request whose body is still to come."""
        given = headers.get(b"x-request-id")
        name = given.decode("latin-1")[:128] if given else self._next_id()
        request = HttpRequest(path, name, started=now(), method=method, headers=headers)
        tracer = self.plane.tracer
        if tracer is not None and tracer.is_on and method == "POST":
            request.trace = tracer.begin_http(path, headers, request.started)
        return request

    async def _read_body(self, request: HttpRequest, receive: Receive) -> bytes:
        most = self.settings.body_bytes
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeftError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise RequestError(413, f"the body has more than {most} bytes")
            self.plane.hold(request, len(parts[-1]))
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def refuse_unparsed(self, data: bytes) -> bytes | None:
        """Return the answer, from its bytes, to a request that a full queue would refuse; None if it must be parsed."""
        if not self._refuses_unparsed or not self.models.is_any_full():
            return None
        name = model_of(data)
        if name is None or name not in self.models.names():
            return None
        queue = self.models.version(name).only_queue
        if queue is None:
            return None  # only the body says in which queue it waits
        try:
            queue.check()
        except BusyError as error:
            self.metrics.count_answer(name, 429, 0.0, 0)
            body = refuse(explain(error)).body
        else:
            return None
        head = f"content-length: {len(body)}\r\nx-request-id: {self._next_id()}\r\nretry-after: 1\r\n\r\n"
        return _REFUSED + head.encode() + body

    def route(self, request: HttpRequest) -> Routed:
        """Return the answer to a complete request, or its question to a model; raise RequestError if it has neither."""
        request.started = now()
        if b"content-encoding" in request.headers:
            self._decompress(request)
        if self.settings.ledger:
            request.spent = Spent()
        return self._router.respond(request, self.plane)

    def _decompress(self, request: HttpRequest) -> None:
        if request.body and request.headers[b"content-encoding"].lower() != b"identity":
            request.body = decompress(request.body, self.settings.body_bytes)
            self.plane.hold(request, len(request.body))

    def _tell_document(self, request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
        """Return the OpenAPI document of this server."""
        return answer(OpenApiWriter(self._router.routes, plane).describe_server())

    def count(self, request: HttpRequest, status: int) -> None:
        """Count and log a request that was answered, or for which nobody waits any more."""
        seconds = self.plane.count(request, status, len(request.body))
        # Do not log every 503: a flood of requests should not fill the disk, too.
        if self.settings.access_log or status in (500, 504):
            entry = {
                "id": request.id, "method": request.method, "path": request.path, "status": status,
                "rows": request.rows, "ms": round(1000 * seconds, 3),
            }  # fmt: skip
            self.plane.say(json.dumps(entry))


async def _wait_or_leave(exchange: _AwaitedExchange, receive: Receive) -> None:
    """Wait for a response that may take a while. If the client leaves, its rows leave the queue."""
    leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        both: set[asyncio.Future[Any]] = {exchange.response, leaving}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        exchange.request.has_left = not exchange.response.done()
    finally:
        leaving.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
