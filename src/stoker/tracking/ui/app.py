"""The routes of `stoker ui`: the document, the answers, the events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stoker.doctor.report.page import document as page
from stoker.errors import StokerError, UsageError
from stoker.tracking.store import record_files
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Trouble
from stoker.tracking.store.deleting import delete
from stoker.tracking.store.entries import finite
from stoker.tracking.store.opening import engine
from stoker.tracking.store.queries import Reader
from stoker.tracking.ui import answers, live
from stoker.tracking.ui.document import document
from stoker.tracking.ui.safety import Guarded

_MOST_COMPARED = 20
_LONGEST_NUMBER = 12


class Site:
    """A store, as a site."""

    def __init__(self, store: Address, ending: threading.Event, *, write: bool) -> None:
        self._store = store
        self._ending = ending
        self._engine = engine(store)
        self._write = write

    def routes(self) -> list[Route]:
        return [
            Route("/", self.start),
            Route("/api/runs", self.answered(self.runs)),
            Route("/api/sparks", self.answered(self.sparks)),
            Route("/api/run/{run}", self.answered(self.run)),
            Route("/api/series", self.answered(self.series)),
            Route("/api/differences", self.answered(self.differences)),
            Route("/api/prices", self.answered(lambda reader, request: answers.prices(reader))),
            Route("/api/events", self.events),
            Route("/api/delete/{run}", self.delete, methods=["POST"]),
            Route("/page/{run}", self.page),
        ]

    async def start(self, request: Request) -> Response:
        text, policy = document()
        return HTMLResponse(text, headers={"content-security-policy": policy})

    def runs(self, reader: Reader, request: Request) -> Any:
        query = request.query_params
        limit = _number(query.get("limit", "200"), "limit", least=0)
        found = answers.runs(reader, query.getlist("where"), query.get("sort", "-started"), limit)
        return {**found, "store": str(self._store), "write": self._write}

    def sparks(self, reader: Reader, request: Request) -> Any:
        query = request.query_params
        return answers.sparks(reader, query.get("runs", "").split(","), query.get("series", "loss"))

    def run(self, reader: Reader, request: Request) -> Any:
        found = answers.run(reader, request.path_params["run"])
        has_page = record_files.is_id(found["id"]) and record_files.path_of(found["id"]).exists()
        return {**found, "page": has_page, "write": self._write}

    def series(self, reader: Reader, request: Request) -> Any:
        query = request.query_params
        most = _number(query.get("points", str(answers.MOST_POINTS)), "points", least=2)
        return answers.series(reader, query.get("run", ""), query.get("name", ""), most)

    def differences(self, reader: Reader, request: Request) -> Any:
        names = [name for name in request.query_params.get("runs", "").split(",") if name]
        if not 2 <= len(names) <= _MOST_COMPARED:
            raise UsageError(f"compare 2 to {_MOST_COMPARED} runs, not {len(names)}")
        return answers.differences(reader, names)

    async def events(self, request: Request) -> Response:
        """Which runs there are and how far their series have come: what changes when anything does."""
        only = request.query_params.get("run")

        def look() -> Any:
            with self._reading() as reader:
                return reader.pulse(only)

        async def over() -> bool:
            return self._ending.is_set() or await request.is_disconnected()

        stream = live.changes(look, over)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def delete(self, request: Request) -> Response:
        if not self._write:
            return JSONResponse({"error": "this page only reads: start it with stoker ui --write"}, 403)
        try:
            await run_in_threadpool(delete, self._store, request.path_params["run"])
        except StokerError as error:
            return JSONResponse({"error": str(error)}, 404)
        return JSONResponse({})

    async def page(self, request: Request) -> Response:
        """The page of a measured run, as `stoker report --html` writes it."""
        try:
            run = request.path_params["run"]
            # By its id only: on the command line, the name of a file is one more way to say which.
            record = await run_in_threadpool(lambda: record_files.read(record_files.path_of(run)))
        except StokerError as error:
            return JSONResponse({"error": str(error)}, 404)
        return HTMLResponse(await run_in_threadpool(page.page, record))

    def answered(self, ask: Callable[[Reader, Request], Any]) -> Callable[[Request], Any]:
        """An answer in JSON, made on a thread; what is wrong with the question is an answer too."""

        def made(request: Request) -> Any:
            with self._reading() as reader:
                return finite(ask(reader, request))

        async def endpoint(request: Request) -> Response:
            try:
                return JSONResponse(await run_in_threadpool(made, request))
            except StokerError as error:
                return JSONResponse({"error": str(error)}, 404)

        return endpoint

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        try:
            with self._engine.connect() as connection:
                yield Reader(connection)
        except sa.exc.SQLAlchemyError as error:
            # Of the question, as a name with a NUL character, or of the store.
            reason = (str(getattr(error, "orig", error)).splitlines() or ["no reason given"])[0]
            raise Trouble(f"the store cannot answer that ({reason})") from error


def make(
    store: Address, token: str, hosts: frozenset[str], ending: threading.Event, *, write: bool = False
) -> Guarded:
    """The app of a store, behind its checks; its events end when the server is `ending`."""
    return Guarded(Starlette(routes=Site(store, ending, write=write).routes()), token, hosts)


def _number(text: str, name: str, least: int) -> int:
    if not text.isdecimal() or len(text) > _LONGEST_NUMBER or int(text) < least:
        raise UsageError(f"{name}={text[:_LONGEST_NUMBER]!r} must be a whole number, at least {least}")
    return int(text)
