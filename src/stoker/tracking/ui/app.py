"""The routes of `stoker ui`: the document, the answers and the events."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stoker.doctor.report.page import document as page
from stoker.errors import StokerError, UsageError
from stoker.files import JOBS
from stoker.tracking.store import record_files
from stoker.tracking.store.address import Address
from stoker.tracking.store.deleting import delete
from stoker.tracking.store.plain_values import JsonObject, make_plain
from stoker.tracking.store.queries import Reader, open_reader
from stoker.tracking.ui import answers, jobs, live
from stoker.tracking.ui.document import make_document
from stoker.tracking.ui.safety import GuardedApp

_MOST_COMPARED = 20
_LONGEST_NUMBER = 12
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class Site:
    """The routes over one store."""

    def __init__(self, store: Address, ending: threading.Event, *, write: bool) -> None:
        self._store = store
        self._ending = ending
        self._write = write

    def routes(self) -> list[Route]:
        return [
            Route("/", self.send_document),
            Route("/api/runs", self.answer_json(self.runs)),
            Route("/api/sparks", self.answer_json(self.sparks)),
            Route("/api/run/{run}", self.answer_json(self.run)),
            Route("/api/series", self.answer_json(self.series)),
            Route("/api/differences", self.answer_json(self.differences)),
            Route("/api/prices", self.answer_json(lambda reader, request: answers.list_prices(reader))),
            Route("/api/jobs", self.answer_json(lambda reader, request: jobs.list_jobs(JOBS))),
            Route("/api/job/{job}", self.answer_json(self.job)),
            Route("/api/events", self.stream_events),
            Route("/api/delete/{run}", self.delete_run, methods=["POST"]),
            Route("/page/{run}", self.send_page),
        ]

    async def send_document(self, request: Request) -> Response:
        text, policy = make_document()
        return HTMLResponse(text, headers={"content-security-policy": policy})

    def runs(self, reader: Reader, request: Request) -> object:
        query = request.query_params
        limit = _parse_number(query.get("limit", "200"), "limit", least=0)
        found = answers.list_runs(reader, query.getlist("where"), query.get("sort", "-started"), limit)
        return {**found, "store": str(self._store), "write": self._write}

    def sparks(self, reader: Reader, request: Request) -> object:
        query = request.query_params
        return answers.draw_sparks(reader, query.get("runs", "").split(","), query.get("series", "loss"))

    def run(self, reader: Reader, request: Request) -> object:
        found = answers.describe_run(reader, request.path_params["run"])
        has_page = record_files.is_id(found["id"]) and record_files.path_of(found["id"]).exists()
        return {**found, "page": has_page, "write": self._write}

    def job(self, reader: Reader, request: Request) -> object:
        return jobs.describe_job(JOBS, request.path_params["job"], request.query_params.get("price", ""))

    def series(self, reader: Reader, request: Request) -> object:
        query = request.query_params
        most = _parse_number(query.get("points", str(answers.MOST_POINTS)), "points", least=2)
        return answers.read_series(reader, query.get("run", ""), query.get("name", ""), most)

    def differences(self, reader: Reader, request: Request) -> object:
        names = [name for name in request.query_params.get("runs", "").split(",") if name]
        if not 2 <= len(names) <= _MOST_COMPARED:
            raise UsageError(f"compare 2 to {_MOST_COMPARED} runs, not {len(names)}")
        return answers.compare_runs(reader, names)

    async def stream_events(self, request: Request) -> Response:
        """Send a pulse whenever something was written about one run, or about any run."""
        only = request.query_params.get("run")

        def read_pulse() -> JsonObject:
            with open_reader(self._store, adopt=False) as reader:
                return reader.pulse(only)

        async def is_over() -> bool:
            return self._ending.is_set() or await request.is_disconnected()

        stream = live.stream_changes(read_pulse, is_over)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def delete_run(self, request: Request) -> Response:
        if not self._write:
            return JSONResponse({"error": "this page is read-only: start it with stoker ui --write"}, 403)
        try:
            await run_in_threadpool(delete, self._store, request.path_params["run"])
        except StokerError as error:
            return JSONResponse({"error": str(error)}, 404)
        return JSONResponse({})

    async def send_page(self, request: Request) -> Response:
        """Send the page of a measured run, as `stoker report --html` writes it."""
        try:
            run = request.path_params["run"]
            # Look the run up only by its id. The name of a file, which a command would take as well, could lead
            # elsewhere.
            record = await run_in_threadpool(lambda: record_files.read(record_files.path_of(run)))
        except StokerError as error:
            return JSONResponse({"error": str(error)}, 404)
        return HTMLResponse(await run_in_threadpool(page.page, record))

    def answer_json(self, ask: Callable[[Reader, Request], object]) -> Endpoint:
        """Make an endpoint that answers in JSON, from a thread; errors in the request become answers, too."""

        def read_answer(request: Request) -> object:
            with open_reader(self._store, adopt=False) as reader:
                return make_plain(ask(reader, request))

        async def endpoint(request: Request) -> Response:
            try:
                return JSONResponse(await run_in_threadpool(read_answer, request))
            except StokerError as error:
                return JSONResponse({"error": str(error)}, 404)

        return endpoint


def make_app(
    store: Address, token: str, hosts: frozenset[str], ending: threading.Event, *, write: bool = False
) -> GuardedApp:
    """Make the app over a store, behind its checks; its event streams end when `ending` is set."""
    return GuardedApp(Starlette(routes=Site(store, ending, write=write).routes()), token, hosts)


def _parse_number(text: str, name: str, least: int) -> int:
    if not text.isdecimal() or len(text) > _LONGEST_NUMBER or int(text) < least:
        raise UsageError(f"{name}={text[:_LONGEST_NUMBER]!r} must be a whole number, at least {least}")
    return int(text)
