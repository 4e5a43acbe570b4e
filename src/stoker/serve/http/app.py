"""The ASGI application: from a request to an answer.

Written against ASGI itself: a framework's routing would cost more than a small model.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from stoker.errors import ArgumentError
from stoker.serve.batching import BusyError, DeadlineError, now
from stoker.serve.http import inference_protocol, page, refusing, tensorflow_rest
from stoker.serve.http.ledger import Spent, described
from stoker.serve.http.messages import HttpError, Request, Response, answer
from stoker.serve.http.metrics import Metrics
from stoker.serve.http.models import Models, Version
from stoker.serve.http.settings import Settings
from stoker.serve.rows import Rows

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# For everybody, with a token or without: who asks is a load balancer.
_REFUSED = b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n"
_OPEN = ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready")


class Gone(Exception):
    """The client did not wait for the answer."""


class App:
    """The server as ASGI calls it."""

    def __init__(
        self,
        settings: Settings,
        models: Models,
        metrics: Metrics,
        say: Callable[[str], None],
        worker: int = 0,
    ) -> None:
        self.settings, self.models, self.metrics, self._say = settings, models, metrics, say
        self.deployment = models.deployment
        self._worker = worker
        self.ready = False
        # Ids that no other worker gives, without asking the system for each.
        self._prefix, self._asked = secrets.token_hex(6), 0

    def _next_id(self) -> str:
        self._asked += 1
        return f"{self._prefix}-{self._asked:x}"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One connection's request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1003})
            return
        request = Request(scope["method"], scope["path"], dict(scope["headers"]), b"")
        request.id = request.headers.get(b"x-request-id", b"").decode("latin-1")[:128] or self._next_id()
        started = now()
        try:
            request.body = await self._body(request, receive)
            started = now()
            if self.settings.ledger:
                request.spent, request.began = Spent(), started
            request.receive = receive
            response = await self._answer(request)
        except HttpError as error:
            response = error.response()
        except Gone:
            response = Response(499, b"")
        self._count(request, response, now() - started)
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

    def crowded(self) -> bool:
        """Some line is full."""
        return self.models.full() and not self.settings.access_log

    def refusal(self, data: bytes) -> bytes | None:
        """The answer to a request that would be refused anyway, from its bytes; None if it is to be looked at."""
        name = refusing.model_of(data)
        line = None if name is None else self.models.fullness(name)
        if name is None or line is None:
            return None
        self.metrics.answered(name, 429, 0.0, 0)
        response = HttpError(429, line, retry_after=1).response()
        head = f"content-length: {len(response.body)}\r\nx-request-id: {self._next_id()}\r\nretry-after: 1\r\n\r\n"
        return _REFUSED + head.encode() + response.body

    async def _body(self, request: Request, receive: Receive) -> bytes:
        most = self.settings.body_bytes
        said = request.headers.get(b"content-length", b"0")
        if said.isdigit() and int(said) > most:
            raise HttpError(413, f"the body has {int(said)} bytes; at most {most} are taken")
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise HttpError(413, f"the body has more than {most} bytes")
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _answer(self, request: Request) -> Response:
        """Whatever goes wrong with a request is told in one line."""
        try:
            return await self._routed(request)
        except ArgumentError as error:
            raise HttpError(400, str(error)) from None
        except BusyError as error:
            raise HttpError(429, str(error), retry_after=1) from None
        except DeadlineError:
            raise HttpError(504, f"there was no answer within {self.settings.timeout:g} s") from None
        except (HttpError, Gone, asyncio.CancelledError):
            raise
        except Exception as error:
            # One request must not take the server with it.
            raise HttpError(500, self.failed(error, request.path, request.id)) from error

    def failed(self, error: Exception, path: str, request: str) -> str:
        """Something that is not the client's fault: it is logged, and told in one line."""
        line = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        self._say(json.dumps({"id": request, "path": path, "error": line}))
        return f"the model failed: {line}"

    async def _routed(self, request: Request) -> Response:
        path = request.path
        if self.settings.token and path not in _OPEN:
            self._check_token(request)
        if path.startswith("/v1/models/"):
            return await tensorflow_rest.handle(request, self.models, self._ask)
        if path == "/readyz" and not self.ready:
            raise HttpError(503, "not ready", retry_after=1)
        if path == "/v2" or path.startswith("/v2/"):
            return await inference_protocol.handle(request, self.models, self._ask)
        if request.method not in ("GET", "HEAD"):
            raise HttpError(
                405 if path in ("/", "/metrics", "/healthz", "/readyz") else 404,
                f"there is nothing at {path}",
            )
        if path in ("/healthz", "/readyz"):
            return answer({"status": "ok"})
        if path == "/metrics":
            return self._metrics()
        if path == "/ledger":
            return answer(self._ledger())
        if path == "/":
            return page.page()
        if path.startswith("/try/"):
            request.model = path.removeprefix("/try/")
            return answer(page.described(request.model, self.models))
        if path == "/v1/models":
            return answer({"models": self.models.names()})
        raise HttpError(404, f"there is nothing at {path}")

    def _check_token(self, request: Request) -> None:
        given = request.headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + self.settings.token.encode()):
            raise HttpError(401, "send the server's token as Authorization: Bearer TOKEN")

    def _metrics(self) -> Response:
        for name in self.models.names():
            self.metrics.waits(name, sum(one.line.rows for one in self.models.versions(name)))
        text = self.metrics.text() + self.models.drift_text(self._worker)
        return Response(200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")

    def _ledger(self) -> dict[str, Any]:
        if not self.settings.ledger:
            raise HttpError(404, "there is no ledger: start the server with --ledger")
        return {name: described(*self.models.books(name)) for name in self.models.names()}

    async def _ask(self, request: Request, version: Version, rows: Rows) -> dict[str, Any]:
        request.rows = rows.count
        self.check_limits(version, rows)
        spent = request.spent
        if spent is not None:
            spent.parse = now() - request.began
        asked = version.line.ask(rows.arrays, rows.count, self.settings.timeout, spent)
        answers = await (_unless_left(asked, request) if version.line.slow else asked)
        found = version.predictor.named(answers)
        if self.deployment.chosen():
            self.sampled(request.id, request.model, version, rows, found)
        if spent is not None:
            request.began = now()  # of encoding
        return found

    def sampled(self, request: str, model: str, version: Version, rows: Rows, found: dict[str, Any]) -> None:
        """Keep it, and look whether what is asked is still what training had."""
        names = [field.name for field in version.predictor.bundle.signature.inputs]
        inputs = dict(zip(names, rows.arrays, strict=True))
        self.deployment.record(request, model, version.number, inputs, found)
        self.models.saw(model, version, rows)

    def check_limits(self, version: Version, rows: Rows) -> None:
        """How much one request may ask for.

        Raises:
            HttpError: it asks for more.
        """
        if rows.count == 0:
            raise HttpError(400, "there are no rows")
        if rows.count > self.settings.rows:
            raise HttpError(
                400, f"{rows.count} rows are too many: at most {self.settings.rows} are taken at once"
            )
        for field, array in zip(version.predictor.bundle.signature.inputs, rows.arrays, strict=True):
            if field.dtype == "string":
                longest = max(map(len, array.ravel()), default=0)
                if longest > self.settings.string_bytes:
                    raise HttpError(
                        400,
                        f"{field.name!r}: a string of {longest} is too long: at most {self.settings.string_bytes}",
                    )

    def _count(self, request: Request, response: Response, seconds: float) -> None:
        if request.model in self.settings.models:
            if request.spent is not None and request.rows:
                # What is left of it is the loop's.
                if response.status == 200:
                    request.spent.encode = now() - request.began
                self.metrics.accounted(request.model, request.spent, seconds, len(request.body))
            self.metrics.answered(request.model, response.status, seconds, request.rows)
        if self.settings.access_log or response.status >= 500:
            entry = {
                "id": request.id, "method": request.method, "path": request.path, "status": response.status,
                "rows": request.rows, "ms": round(1000 * seconds, 3),
            }  # fmt: skip
            self._say(json.dumps(entry))


async def _unless_left(asked: asyncio.Future[list[Any]], request: Request) -> list[Any]:
    """It may take a while: if the client leaves, its rows leave the line."""
    assert request.receive is not None
    left = asyncio.ensure_future(_left(request.receive))
    try:
        both: set[asyncio.Future[Any]] = {asked, left}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise Gone
        return asked.result()
    finally:
        asked.cancel()
        left.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
