"""The Open Inference Protocol, version 2 (KServe, Triton): JSON, and tensors as plain bytes after it.

A request that does not fit raises `RequestError`.

GET  /v2, /v2/health/live, /v2/health/ready, /v2/models/NAME[/versions/V][/ready|/config|/stats], /v2/models/stats
POST /v2/models/NAME[/versions/V]/infer, /v2/repository/index
"""

from __future__ import annotations

from functools import partial

import orjson

from stoker.serve.http.inference_asking import (
    CONFIG,
    LENGTH,
    METADATA,
    REPOSITORY,
    SERVER,
    STATISTICS,
    infer_asking,
)
from stoker.serve.http.messages import (
    OPTIONS,
    HttpRequest,
    HttpResponse,
    answer,
    may_hold_booleans,
    parse_object,
    plain_values,
)
from stoker.serve.http.routing import ModelPath, Route, ask_model
from stoker.serve.http.schemas import of_json, of_object
from stoker.serve.plane import limits
from stoker.serve.plane.answering import DataPlane, Parsed
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.inference_tensors import (
    EXTENSIONS,
    NAMES,
    PLATFORM,
    SentTensor,
    WantedOutput,
    choose_outputs,
    count_statistics,
    describe_config,
    list_repository,
    pack_values,
    parameters_of,
    shape_of,
)
from stoker.serve.plane.served import Answers
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.plane.versions import Version
from stoker.serve.rows import refuse_booleans
from stoker.serve.signature import Array, Field
from stoker.units import quantity
from stoker.version import __version__

_LENGTH = LENGTH.lower().encode()
_DIGITS = 12


def tell_server(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say who answers."""
    return answer({"name": "stoker", "version": __version__, "extensions": EXTENSIONS})


def tell_live(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say that the server runs."""
    return answer({"live": True})


def tell_ready(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say that all models answer."""
    plane.require_ready()
    return answer({"ready": True})


def tell_model_ready(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say that a model answers."""
    plane.require_ready()
    named.find_version(plane)
    return answer({"name": named.model, "ready": True})


def tell_metadata(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Describe the default signature of a version."""
    signature = named.find_version(plane).signature()
    found = {
        "name": named.model,
        "versions": [str(one.number) for one in plane.models.versions(named.model)],
        "platform": PLATFORM,
        "inputs": [_describe(field) for field in signature.inputs],
        "outputs": [_describe(field) for field in signature.outputs],
    }
    return answer(found)


def tell_config(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say how a model is set up."""
    return answer(describe_config(named.model, named.find_version(plane), plane.settings.batch))


def tell_statistics(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say what was answered so far, by one model or by all."""
    models = plane.models
    if named.model:
        named.find_version(plane)
    names = [named.model] if named.model else models.names()
    return answer({"model_stats": [one for name in names for one in count_statistics(models, name)]})


def tell_repository(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """List all versions of all models."""
    return answer(list_repository(plane.models))


def _describe(field: Field) -> dict[str, object]:
    return {"name": field.name, "datatype": NAMES.get(field.dtype, field.dtype), "shape": shape_of(field)}


def infer(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """Answer tensors with tensors."""
    head, binary = _split(request, version.inputs, settings)
    name = parameters_of(head).get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(400, '"signature_name" must be a string')
    signature = version.signature(name)
    given = _read_inputs(head, binary, settings)
    if may_hold_booleans(request.body[: len(request.body) - len(binary)]):
        refuse_booleans(signature.inputs, _list_data(head))  # in an array, true among numbers is 1
    rows = signature.read_rows(given)
    wanted = _choose_outputs(head, signature.outputs)
    about: dict[str, object] = {"model_name": request.model, "model_version": str(version.number)}
    if head.get("id") is not None:
        if not isinstance(head["id"], str):
            raise RequestError(400, '"id" must be a string')
        about["id"] = head["id"]
    return Parsed(signature, rows, partial(_encode, version, about, wanted))


def _encode(
    version: Version, about: dict[str, object], wanted: list[WantedOutput], answers: Answers
) -> HttpResponse:
    outputs: list[dict[str, object]] = []
    tail: list[bytes] = []
    for one in wanted:
        datatype, array = one.shape_answer(version, answers[one.field.name])
        output: dict[str, object] = {"name": one.field.name, "datatype": datatype, "shape": list(array.shape)}
        if one.is_binary:
            data = pack_values(array)
            output["parameters"] = {"binary_data_size": len(data)}
            tail.append(data)
        else:
            output["data"] = plain_values(array.ravel())
        outputs.append(output)
    body = orjson.dumps({**about, "outputs": outputs}, option=OPTIONS)
    if not tail:
        return HttpResponse(200, body)
    headers = [(_LENGTH, str(len(body)).encode())]
    return HttpResponse(200, body + b"".join(tail), b"application/octet-stream", headers)


def _split(
    request: HttpRequest, fields: tuple[Field, ...], settings: ServerSettings
) -> tuple[dict[str, object], bytes]:
    """Split a request into its JSON and the bytes after it."""
    length = request.headers.get(_LENGTH)
    body = request.body
    if length is not None:
        if not length.isdigit() or len(length) > _DIGITS or int(length) > len(body):
            given = length[: _DIGITS + 1].decode("latin-1")
            raise RequestError(
                400, f"Inference-Header-Content-Length must be at most {len(body)}, got {given}"
            )
        body = body[: int(length)]
    limits.check_json(body, fields, settings)
    return parse_object(body), request.body[len(body) :]


def _read_inputs(head: dict[str, object], binary: bytes, settings: ServerSettings) -> dict[str, Array]:
    inputs = head.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise RequestError(400, '"inputs" must be a list with at least one tensor')
    found: dict[str, Array] = {}
    place = 0
    for one in map(SentTensor.of_json, inputs):
        if one.name in found:
            raise RequestError(400, f"the input {one.name!r} is given twice")
        size = one.size
        # Each value takes at least a byte of the body, so if the body fits, so does the array.
        limits.check_shape(one.name, one.shape, 1 if size is None else one.width, settings)
        if size is None:
            found[one.name] = one.from_json()
            continue
        if type(size) is not int or size < 0 or place + size > len(binary):
            raise RequestError(400, f"{one.name!r}: binary_data_size {size!r} exceeds the bytes sent")
        found[one.name] = one.from_bytes(binary[place : place + size])
        place += size
    if place != len(binary):
        raise RequestError(400, f"the body has {quantity(len(binary) - place, 'byte')} after the last tensor")
    return found


def _list_data(head: dict[str, object]) -> dict[str, object]:
    """Return the values of the inputs as they came in the JSON."""
    inputs = head["inputs"]
    assert isinstance(inputs, list)  # as `_read_inputs` found
    return {one["name"]: one.get("data") for one in inputs}


def _choose_outputs(head: dict[str, object], fields: tuple[Field, ...]) -> list[WantedOutput]:
    """Choose the outputs to give, and their form."""
    every = _read_switch(parameters_of(head), "binary_data_output", False)
    asked = head.get("outputs")
    asked = [] if asked is None else asked
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise RequestError(400, '"outputs" must be a list of objects with "name"')
    found: dict[str, tuple[bool, object]] = {}
    for one in asked:
        name, parameters = one.get("name"), parameters_of(one)
        if not isinstance(name, str):
            raise RequestError(
                400, f"there is no output {name!r}; the outputs are {', '.join(x.name for x in fields)}"
            )
        if name in found:
            raise RequestError(400, f"the output {name!r} is asked for twice")
        found[name] = (_read_switch(parameters, "binary_data", every), parameters.get("classification", 0))
    return choose_outputs(fields, found, every)


def _read_switch(parameters: dict[str, object], name: str, usual: bool) -> bool:
    found = parameters.get(name, usual)
    if not isinstance(found, bool):
        raise RequestError(400, f"{name!r} must be true or false")
    return found


_READY = of_object(ready={"type": "boolean"})
_BASES = tuple(f"/v2/models/{{model}}{one}" for one in ("", "/versions/{version}"))
ROUTES = (
    Route("GET", "/v2", "Name, version and extensions of the server", tell_server, of_json(SERVER)),
    Route(
        "GET",
        "/v2/health/live",
        "Whether the server runs",
        tell_live,
        of_json(of_object(live={"type": "boolean"})),
    ),
    Route("GET", "/v2/health/ready", "Whether all models answer", tell_ready, of_json(_READY)),
    Route("POST", "/v2/repository/index", "All versions of all models", tell_repository, of_json(REPOSITORY)),
    Route("GET", "/v2/models/stats", "What was answered so far", tell_statistics, of_json(STATISTICS)),
    *(
        route
        for base in _BASES
        for route in (
            Route("GET", base, "The model's inputs and outputs", tell_metadata, of_json(METADATA)),
            Route("GET", f"{base}/ready", "Whether the model answers", tell_model_ready, of_json(_READY)),
            Route("GET", f"{base}/config", "How the model is set up", tell_config, of_json(CONFIG)),
            Route("GET", f"{base}/stats", "What it answered so far", tell_statistics, of_json(STATISTICS)),
            Route("POST", f"{base}/infer", "Tensors to tensors", ask_model(infer), asking=infer_asking),
        )
    ),
)
