"""The table of paths and what each one does. It routes requests and describes itself (`openapi`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from stoker.serve.http.messages import HttpRequest, HttpResponse, MethodError, Routed
from stoker.serve.http.schemas import Content, Schema, of_json
from stoker.serve.plane.answering import DataPlane, Parsed, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.plane.versions import Version

_MOST_PATHS = 256
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class ModelPath:
    """The model that a path names, and optionally one of its versions, by number or label."""

    model: str = ""
    version: str | None = None
    label: str | None = None

    def find_version(self, plane: DataPlane) -> Version:
        """Return the version that is to answer; raise RequestError if there is none."""
        return plane.models.version(self.model, self.version, self.label)


@dataclass(frozen=True)
class Asking:
    """The inputs and outputs of a model at a route.

    Attributes:
        body: what the request holds, by media type.
        answer: what the response holds, by media type.
        request_headers, response_headers: headers in addition to the usual ones.
    """

    body: Content
    answer: Content
    request_headers: Mapping[str, Schema] = field(default_factory=dict)
    response_headers: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """A method at a path.

    Attributes:
        method: GET, which HEAD may stand for, or POST.
        path: the path, with {model}, {version} and {label} as placeholders.
        summary: what the route is for, in a few words.
        respond: answers a request, or returns the question that it asks a model.
        answer: what the response holds, by media type, if that does not depend on the model.
        asking: for a route that asks a model, a version's inputs and outputs; None if a version can never be asked
            there.
        errors: statuses in addition to those that every request may get.
        is_documented: whether the OpenAPI document lists the route.
    """

    method: str
    path: str
    summary: str
    respond: Callable[[HttpRequest, DataPlane, ModelPath], Routed]
    answer: Content = field(default_factory=lambda: of_json({}))
    asking: Callable[[Version, ServerSettings], Asking | None] | None = None
    errors: tuple[int, ...] = ()
    is_documented: bool = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that the path names."""
        return tuple(_PART.findall(self.path))


def ask_model(
    parse: Callable[[HttpRequest, Version, ServerSettings], Parsed[HttpResponse]],
) -> Callable[[HttpRequest, DataPlane, ModelPath], Routed]:
    """Return a responder that queries the model in the path; `parse` makes rows from the request."""

    def respond(request: HttpRequest, plane: DataPlane, named: ModelPath) -> Routed:
        version, settings = named.find_version(plane), plane.settings
        is_pinned = named.version is not None or named.label is not None
        return Question(
            named.model, version, len(request.body), lambda asked: parse(request, asked, settings), is_pinned
        )

    return respond


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        by_path: dict[str, dict[str, Route]] = {}
        for route in self.routes:
            by_path.setdefault(route.path, {})[route.method] = route
        self._table = [(_compile_path(path), methods) for path, methods in by_path.items()]
        # Clients use few paths, again and again.
        self._find = lru_cache(_MOST_PATHS)(self._match)

    def _match(self, path: str) -> tuple[Mapping[str, Route], ModelPath] | None:
        plain = path.rstrip("/") or "/"
        for pattern, methods in self._table:
            found = pattern.fullmatch(plain)
            if found is not None:
                return methods, ModelPath(**found.groupdict())
        return None

    def respond(self, request: HttpRequest, plane: DataPlane) -> Routed:
        """Answer a request, or return its question to a model; raise RequestError if nothing is at its path."""
        found = self._find(request.path)
        if found is None:
            raise RequestError(404, f"there is nothing at {request.path}{_hint(request.path)}")
        methods, named = found
        request.model = named.model
        route = methods.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            raise MethodError(request.path, list_methods(methods))
        if request.trace is not None:
            request.trace.operation = route.path
        return route.respond(request, plane, named)


def _compile_path(path: str) -> re.Pattern[str]:
    """Compile a path so that text and names alternate in the result of `split`."""
    parts = enumerate(_PART.split(path))
    return re.compile(
        "".join(f"(?P<{part}>[^/:]+)" if place % 2 else re.escape(part) for place, part in parts)
    )


def list_methods(known: Iterable[str]) -> list[str]:
    """List the methods that a path takes: HEAD wherever there is GET."""
    return sorted({*known, *(("HEAD",) if "GET" in known else ())})


def _hint(path: str) -> str:
    is_verb = path.startswith("/v1/models/") and ":" in path
    return ": the verbs are predict, classify and regress" if is_verb else ""
