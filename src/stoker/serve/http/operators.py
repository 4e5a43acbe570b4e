"""Routes of no protocol: health, metrics and the ledger for operators; the page and its data for people."""

from __future__ import annotations

from stoker.serve.http import page
from stoker.serve.http.messages import HttpRequest, HttpResponse, answer
from stoker.serve.http.routing import ModelPath, Route
from stoker.serve.http.schemas import Schema, of_json, of_list, of_object
from stoker.serve.plane.answering import DataPlane
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.ledger import to_json
from stoker.serve.plane.settings import ServerSettings

_TEXT: Schema = {"type": "string"}
_STATUS = of_json(of_object(status=_TEXT))
_MODELS = of_json(of_object(models=of_list(_TEXT)))
_METRICS = {"text/plain": _TEXT}


def tell_health(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say that the server runs."""
    return answer({"status": "ok"})


def tell_readiness(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say that all models answer, and that the server is not shutting down."""
    plane.require_ready()
    return answer({"status": "ok"})


def tell_metrics(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Return all counts, for Prometheus."""
    models = plane.models
    models.note_waiting()
    text = plane.metrics.text() + models.extra_text()
    return HttpResponse(200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")


def tell_ledger(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say where the time of requests went."""
    if not plane.settings.ledger:
        raise RequestError(404, "The ledger is off: start the server with --ledger.")
    return answer({name: to_json(*plane.models.books(name)) for name in plane.models.names()})


def tell_shadows(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say whether candidates answer as their models do, as far as this worker knows."""
    if not plane.settings.shadows:
        raise RequestError(404, "There is no candidate: start the server with --shadow.")
    return answer(plane.models.shadows.describe())


def show_page(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Show a page in browsers; KServe's clients ask here whether the server is alive."""
    if b"text/html" in request.headers.get(b"accept", b""):
        return page.page()
    return answer({"status": "alive"})


def tell_inputs(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Return what the page shows about a model."""
    return answer(page.describe_model(named.model, plane.models))


def tell_models(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """List the names of the models, as KServe's servers do."""
    return answer({"models": plane.models.names()})


def list_operator_routes(settings: ServerSettings) -> list[Route]:
    """List the routes, some of which depend on the options."""
    metrics = dict.fromkeys(one for one in ("/metrics", settings.metrics_path) if one)
    return [
        Route("GET", "/healthz", "Whether the server runs", tell_health, _STATUS),
        Route("GET", "/readyz", "Whether all models answer", tell_readiness, _STATUS),
        *(Route("GET", path, "Counts for Prometheus", tell_metrics, _METRICS) for path in metrics),
        Route(
            "GET", "/ledger", "Where the time of requests went", tell_ledger, of_json({"type": "object"}),
            is_documented=settings.ledger,
        ),
        Route(
            "GET", "/shadow", "Whether candidates answer as their models do", tell_shadows, of_json({"type": "object"}),
            is_documented=bool(settings.shadows),
        ),
        Route("GET", "/", "A page to try the models", show_page, {**_STATUS, "text/html": _TEXT}),
        Route("GET", "/try/{model}", "Inputs and examples of a model", tell_inputs, of_json({"type": "object"})),
        *(Route("GET", path, "The models", tell_models, _MODELS) for path in ("/v1/models", "/v2/models")),
    ]  # fmt: skip
