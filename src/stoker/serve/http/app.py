"""The application: from a request to an answer.

A request takes four steps: `admission` checks it before its body is read, `route` finds whom it asks, `parse` makes it
rows for a model's line, and `closed` makes the answers a response. Between them, `direct` is called back and the ASGI
application awaits. It is written against ASGI itself: a framework's routing would cost more than a small model.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stoker.errors import ArgumentError
from stoker.serve.batching import BusyError, DeadlineError, now
from stoker.serve.http import inference_protocol, limits, page, refusing, tensorflow_rest
from stoker.serve.http.admission import Admission
from stoker.serve.http.ledger import Spent, described
from stoker.serve.http.messages import HttpError, Request, Response, answer
from stoker.serve.http.metrics import Metrics
from stoker.serve.http.models import Models, Version
from stoker.serve.http.question import Question, Unparsed
from stoker.serve.http.settings import Settings
from stoker.serve.images import takes_files
from stoker.serve.rows import Rows

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_REFUSED = b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n"
# A body of more bytes is parsed in a thread, so that the loop can answer others meanwhile; so is one that may hold
# image files, of which few bytes may become many pixels.
_LARGE, _LARGE_IMAGE = 128 << 10, 4 << 10


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
        self._refuses_anybody = not settings.access_log and not settings.token
        self._worker = worker
        self.ready = False
        self.admission = Admission(settings)
        # One thread: large bodies wait for each other, and not everybody for them.
        self._parser = ThreadPoolExecutor(1, "stoker-parse")
        # Ids that no other worker gives, without asking the system for each.
        self._prefix, self._named = secrets.token_hex(6), 0

    def _next_id(self) -> str:
        self._named += 1
        return f"{self._prefix}-{self._named:x}"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One request; of anything but HTTP the server is told nothing (`running`)."""
        request = self.request(scope["method"], scope["path"], dict(scope["headers"]))
        try:
            self.admission.check(request)
            request.body = await self._body(request, receive)
            routed = self.route(request)
            if isinstance(routed, Response):
                response = routed
            else:
                asked = await self._parsed(request, routed)
                response = self.closed(request, asked, await self._asked(request, asked, receive))
        except Gone:
            response = Response(499, b"")
        except Exception as error:  # noqa: BLE001 - one request must not take the server with it
            response = self.failure(request, error)
        finally:
            self.admission.release(request)
        self.count(request, response)
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

    def request(self, method: str, path: str, headers: dict[bytes, bytes]) -> Request:
        """A request whose body is still to come."""
        given = headers.get(b"x-request-id")
        name = given.decode("latin-1")[:128] if given else self._next_id()
        return Request(method, path, headers, b"", name, started=now())

    def route(self, request: Request) -> Response | Unparsed:
        """The answer to a request that is all there, or the model it asks.

        Raises:
            Exception: for `failure`.
        """
        request.started = now()
        if self.settings.ledger:
            request.spent = Spent()
        return self._routed(request)

    def parse(self, request: Request, unparsed: Unparsed) -> Question:
        """What it asks of the model.

        Raises:
            Exception: for `failure`.
        """
        asked = unparsed.parse()
        request.rows = asked.rows.count
        limits.check_converted(asked.version.predictor.bundle.signature.inputs, asked.rows, self.settings)
        if request.spent is not None:
            request.spent.parse = now() - request.started
        return asked

    def is_large(self, size: int, version: Version) -> bool:
        """Parsing so many bytes may hold up everybody else, and belongs into a thread."""
        if size <= _LARGE_IMAGE:
            return False
        return size > _LARGE or any(map(takes_files, version.predictor.bundle.signature.inputs))

    def aside(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Do something in the thread that parses large bodies."""
        return asyncio.get_running_loop().run_in_executor(self._parser, work)

    async def _parsed(self, request: Request, unparsed: Unparsed) -> Question:
        if not self.is_large(len(request.body), unparsed.version):
            return self.parse(request, unparsed)
        found: Question = await self.aside(lambda: self.parse(request, unparsed))
        return found

    def closed(self, request: Request, asked: Question, answers: list[Any]) -> Response:
        """The model's answers as a response."""
        found = asked.version.predictor.named(answers)
        if self.deployment.chosen():
            self.sampled(request.id, request.model, asked.version, asked.rows, found)
        if request.spent is None:
            return asked.encode(found)
        began = now()
        response = asked.encode(found)
        request.spent.encode = now() - began
        return response

    def failure(self, request: Request, error: BaseException) -> Response:
        """Whatever went wrong with a request, in one line."""
        if isinstance(error, HttpError):
            return error.response()
        if isinstance(error, ArgumentError):
            return HttpError(400, str(error)).response()
        if isinstance(error, BusyError):
            return HttpError(429, str(error), retry_after=1).response()
        if isinstance(error, DeadlineError):
            return HttpError(504, f"there was no answer within {self.settings.timeout:g} s").response()
        return HttpError(500, self.failed(error, request.path, request.id)).response()

    async def _asked(self, request: Request, asked: Question, receive: Receive) -> list[Any]:
        line, rows = asked.version.line, asked.rows
        answers = line.ask(rows.arrays, rows.count, self.settings.timeout, request.spent)
        return await (_unless_left(answers, receive) if line.slow else answers)

    def crowded(self) -> bool:
        """Some line is full, and whoever is refused need not be known."""
        return self._refuses_anybody and self.models.full()

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
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise HttpError(413, f"the body has more than {most} bytes")
            self.admission.hold(request, len(parts[-1]))
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def failed(self, error: BaseException, path: str, request: str) -> str:
        """Something that is not the client's fault: it is logged, and told in one line."""
        line = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        self._say(json.dumps({"id": request, "path": path, "error": line}))
        return f"the model failed: {line}"

    def _routed(self, request: Request) -> Response | Unparsed:
        path = request.path
        if path.startswith("/v1/models/"):
            return tensorflow_rest.handle(request, self.models)
        if not self.ready and (path == "/readyz" or (path.startswith("/v2/") and path.endswith("/ready"))):
            raise HttpError(503, "not ready", retry_after=1)
        if path == "/v2" or path.startswith("/v2/"):
            return inference_protocol.handle(request, self.models)
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

    def _metrics(self) -> Response:
        for name in self.models.names():
            self.metrics.waits(name, sum(one.line.rows for one in self.models.versions(name)))
        text = self.metrics.text() + self.models.drift_text(self._worker)
        return Response(200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")

    def _ledger(self) -> dict[str, Any]:
        if not self.settings.ledger:
            raise HttpError(404, "The ledger is off: start the server with --ledger.")
        return {name: described(*self.models.books(name)) for name in self.models.names()}

    def sampled(self, request: str, model: str, version: Version, rows: Rows, found: dict[str, Any]) -> None:
        """Keep it, and look whether what is asked is still what training had."""
        names = [field.name for field in version.predictor.bundle.signature.inputs]
        inputs = dict(zip(names, rows.arrays, strict=True))
        self.deployment.record(request, model, version.number, inputs, found)
        self.models.saw(model, version, rows)

    def count(self, request: Request, response: Response) -> None:
        """It is answered, or nobody waits for it any more."""
        seconds = now() - request.started
        if request.model in self.settings.models:
            if request.spent is not None and request.rows:
                self.metrics.accounted(request.model, request.spent, seconds, len(request.body))
            self.metrics.answered(request.model, response.status, seconds, request.rows)
        # Not each 503: who floods a server should not fill its disk, too.
        if self.settings.access_log or response.status in (500, 504):
            entry = {
                "id": request.id, "method": request.method, "path": request.path, "status": response.status,
                "rows": request.rows, "ms": round(1000 * seconds, 3),
            }  # fmt: skip
            self._say(json.dumps(entry))


async def _unless_left(asked: asyncio.Future[list[Any]], receive: Receive) -> list[Any]:
    """It may take a while: if the client leaves, its rows leave the line."""
    left = asyncio.ensure_future(_left(receive))
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
