"""The OpenAPI document of a running server, made from its own routes, models and errors.

It lists each model's own paths with that model's inputs, so it describes exactly what the server takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from stoker.serve.http.admission import OPEN
from stoker.serve.http.routing import Asking, ModelPath, Route
from stoker.serve.http.schemas import Content, Schema, list_components, of_json, of_object
from stoker.serve.plane.answering import DataPlane
from stoker.serve.plane.errors import MEANINGS, RETRY
from stoker.serve.signature import Field
from stoker.version import __version__

_OPENAPI = "3.1.0"
_TEXT: Schema = {"type": "string"}
_ERROR = of_object(error={"type": "string", "description": "What is wrong and what to do, in one line."})
# The errors that any request may get, those of a request that names a model, and those of one that a model answers.
_USUAL, _OF_A_MODEL, _OF_AN_ANSWER = (400, 408, 413, 415, 503), (404,), (429, 500, 504)
_REQUEST_ID = {"x-request-id": {"schema": _TEXT, "description": "The request's own id, or a new one."}}
_RETRY_AFTER = {"retry-after": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}


@dataclass(frozen=True)
class OpenApiWriter:
    """Describes the routes of a server."""

    routes: tuple[Route, ...]
    plane: DataPlane

    def describe_server(self) -> dict[str, object]:
        """Return the document."""
        paths: dict[str, dict[str, object]] = {}
        for route in self.routes:
            for named in self._fill(route) if route.is_documented else ():
                operation = self._describe_operation(route, named)
                if operation is not None:
                    paths.setdefault(_path_of(route, named), {})[route.method.lower()] = operation
        components: dict[str, object] = {
            "schemas": {"Error": _ERROR, **list_components(self._fields(), self.plane.settings)},
            "responses": {str(status): _describe_error(status) for status in MEANINGS},
        }
        if self.plane.settings.token:
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        title = f"stoker serve: {', '.join(self.plane.models.names())}"
        text = "TensorFlow Serving's REST API and the Open Inference Protocol, for the models of this server."
        return {
            "openapi": _OPENAPI,
            "info": {"title": title, "version": __version__, "description": text},
            "paths": paths,
            "components": components,
        }

    def _fields(self) -> Iterator[Field]:
        for name in self.plane.models.names():
            for version in self.plane.models.versions(name):
                for signature in version.signatures.values():
                    yield from (*signature.inputs, *signature.outputs)

    def _fill(self, route: Route) -> Iterator[ModelPath]:
        """Yield everything that a route's path can name."""
        models = self.plane.models
        if "model" not in route.parts:
            yield ModelPath()
            return
        for name in models.names():
            if "version" in route.parts:
                yield from (ModelPath(name, version=str(one.number)) for one in models.versions(name))
            elif "label" in route.parts:
                yield from (ModelPath(name, label=one) for one in models.labels(name))
            elif models.versions(name):
                yield ModelPath(name)

    def _describe_operation(self, route: Route, named: ModelPath) -> dict[str, object] | None:
        """Describe an operation; None if the route can never be used with this version."""
        asking = None
        if route.asking is not None:
            asking = route.asking(named.find_version(self.plane), self.plane.settings)
            if asking is None:
                return None
        found: dict[str, object] = {
            "summary": route.summary,
            "tags": [named.model or "server"],
            "responses": self._describe_responses(route, asking),
        }
        if asking is not None:
            found["requestBody"] = {"required": True, "content": _describe_content(asking.body)}
            found["parameters"] = [
                {"name": name, "in": "header", "required": False, "schema": schema}
                for name, schema in asking.request_headers.items()
            ]
        if self.plane.settings.token and route.path not in OPEN:
            found["security"] = [{"token": []}]
        return found

    def _describe_responses(self, route: Route, asking: Asking | None) -> dict[str, object]:
        settings = self.plane.settings
        statuses = {
            *_USUAL,
            *(_OF_A_MODEL if route.parts else ()),
            *(_OF_AN_ANSWER if asking is not None else ()),
        }
        if settings.token and route.path not in OPEN:
            statuses.add(401)
        if settings.hosts:
            statuses.add(421)
        good = {
            "description": "The answer.",
            "headers": {
                **_REQUEST_ID,
                **_describe_headers({} if asking is None else asking.response_headers),
            },
            "content": _describe_content(route.answer if asking is None else asking.answer),
        }
        refused = {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}
        return {"200": good, **refused}


def _path_of(route: Route, named: ModelPath) -> str:
    path = route.path
    for part in route.parts:
        path = path.replace(f"{{{part}}}", quote(str(getattr(named, part)), safe=""))
    return path


def _describe_headers(headers: Mapping[str, Schema]) -> dict[str, object]:
    return {name: {"schema": schema} for name, schema in headers.items()}


def _describe_content(content: Content) -> dict[str, object]:
    return {kind: {"schema": schema} for kind, schema in content.items()}


def _describe_error(status: int) -> dict[str, object]:
    return {
        "description": MEANINGS[status],
        "headers": {**_REQUEST_ID, **(_RETRY_AFTER if status in RETRY else {})},
        "content": _describe_content(of_json({"$ref": "#/components/schemas/Error"})),
    }
