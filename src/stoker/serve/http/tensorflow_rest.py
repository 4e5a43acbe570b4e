"""TensorFlow Serving's REST API: predict in rows and columns, classify, regress, metadata, status.

A request that does not fit raises `RequestError`.

POST /v1/models/NAME[/versions/V|/labels/L]:predict      {"instances": [...]} or {"inputs": ...}; or text/csv
GET  /v1/models/NAME[/versions/V|/labels/L][/metadata]
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import orjson

from stoker.serve.bundle import SIGNATURE
from stoker.serve.http.messages import (
    OPTIONS,
    HttpRequest,
    HttpResponse,
    Routed,
    answer,
    parse_object,
    plain_values,
)
from stoker.serve.plane import limits
from stoker.serve.plane.answering import Answers, Parsed, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.models import ServedModels, Version
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rows import InputRows, as_asked
from stoker.serve.signature import Array, Field

_DEEPEST = 32
_TYPES = {
    "bool": "DT_BOOL", "float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int16": "DT_INT16",
    "int32": "DT_INT32", "int64": "DT_INT64", "int8": "DT_INT8", "string": "DT_STRING", "uint16": "DT_UINT16",
    "uint32": "DT_UINT32", "uint64": "DT_UINT64", "uint8": "DT_UINT8",
}  # fmt: skip


def route(request: HttpRequest, models: ServedModels) -> Routed:
    """The answer to anything below /v1/models/, or what it asks of a model."""
    request.model, number, label, rest, verb = _place(request.path)
    if verb:
        if rest or verb not in _VERBS:
            raise RequestError(
                404, f"there is nothing at {request.path}: the verbs are predict, classify and regress"
            )
        if request.method != "POST":
            raise RequestError(405, f"{verb} needs a POST request")
        version = models.version(request.model, number, label)
        parse = partial(_VERBS[verb], request, version, models.settings)
        return Question(request.model, version, len(request.body), parse)
    if request.method != "GET":
        raise RequestError(405, f"{request.path} needs a GET request")
    if rest == ["metadata"]:
        return answer(metadata(request.model, models.version(request.model, number, label)))
    if rest:
        raise RequestError(404, f"there is nothing at {request.path}")
    every = number is None and label is None
    found = models.versions(request.model) if every else [models.version(request.model, number, label)]
    return answer({"model_version_status": [_status(one) for one in found]})


@lru_cache(128)
def _place(path: str) -> tuple[str, str | None, str | None, list[str], str]:
    """Model, version, label, what follows, verb."""
    path, _, verb = path.removeprefix("/v1/models/").partition(":")
    parts = path.strip("/").split("/")
    number = parts[2] if len(parts) > 2 and parts[1] == "versions" else None
    label = parts[2] if len(parts) > 2 and parts[1] == "labels" else None
    return parts[0], number, label, parts[3:] if number or label else parts[1:], verb


def _status(version: Version) -> dict[str, object]:
    status = {"error_code": "OK", "error_message": ""}
    return {"version": str(version.number), "state": "AVAILABLE", "status": status}


def metadata(name: str, version: Version) -> dict[str, object]:
    """The signature in TensorFlow Serving's form."""
    signature = version.predictor.bundle.signature
    described = {
        "inputs": {field.name: _tensor_info(field) for field in signature.inputs},
        "outputs": {field.name: _tensor_info(field) for field in signature.outputs},
        "method_name": "tensorflow/serving/predict",
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
        "metadata": {"signature_def": {"signature_def": {SIGNATURE: described}}},
    }


def _tensor_info(field: Field) -> dict[str, object]:
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in (None, *field.shape)]
    return {
        "dtype": _TYPES.get(field.dtype, "DT_INVALID"),
        "tensor_shape": {"dim": sizes, "unknown_rank": False},
        "name": f"{SIGNATURE}_{field.tensor}:0",
    }


def predict(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """Rows (`instances`) or columns (`inputs`), answered in the same form; rows of a CSV file as rows."""
    fields = version.inputs
    if request.headers.get(b"content-type", b"").startswith(b"text/csv"):
        return Parsed(as_asked(fields, _csv_rows(request.body, settings)), _in_rows)
    body = _read_object(request, fields, settings)
    if ("instances" in body) == ("inputs" in body):
        raise RequestError(400, 'the body must have either "instances" (rows) or "inputs" (columns)')
    in_rows = "instances" in body
    given = body["instances"] if in_rows else body["inputs"]
    limits.check_columns(given, settings)
    given = decode_base64(given)
    if in_rows:
        given = _instances(fields, given)
    elif not isinstance(given, dict):
        given = {fields[0].name: given} if len(fields) == 1 else given
    name = "instances" if in_rows else "inputs"
    rows = as_asked(fields, given, f'"{name}" must hold rows, not the values of a single one')
    return Parsed(rows, _in_rows if in_rows else _in_columns)


def _csv_rows(body: bytes, settings: ServerSettings) -> list[dict[str, object]]:
    """The rows of a CSV file with a header; the separator is the one that the header has most of."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not UTF-8: send CSV as UTF-8") from None
    header = text.partition("\n")[0]
    found = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t|", key=header.count))
    rows: list[dict[str, object]] = []
    try:
        for row in found:
            rows.append(dict(row))
            limits.check_rows(len(rows), settings)
    except csv.Error as error:
        raise RequestError(400, f"the body is not CSV: {error}") from None
    if not rows:
        raise RequestError(400, "the body needs a header and at least one row")
    return rows


def _in_rows(answers: Answers) -> HttpResponse:
    found = {name: plain_values(one) for name, one in answers.items()}
    if len(found) == 1:
        return answer({"predictions": next(iter(found.values()))})
    columns = list(found.values())
    return answer({"predictions": [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]})


def _in_columns(answers: Answers) -> HttpResponse:
    found = {name: plain_values(one) for name, one in answers.items()}
    return answer({"outputs": found if len(found) > 1 else next(iter(found.values()))})


def _instances(fields: tuple[Field, ...], given: object) -> object:
    if not isinstance(given, list) or not given:
        raise RequestError(400, '"instances" must be a list with at least one row')
    if isinstance(given[0], dict):
        return given
    if len(fields) > 1:
        named = ", ".join(str(field) for field in fields)
        raise RequestError(400, f"an instance must be an object with {named}; got {type(given[0]).__name__}")
    return {fields[0].name: given}


def classify(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """Labels with their scores, the best first."""
    _labels(request.model, version)
    rows = _examples(request, version, settings)
    return Parsed(rows, partial(_encode_result, classes, request.model, version))


def regress(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """One number for each example."""
    _number(request.model, version)
    rows = _examples(request, version, settings)
    return Parsed(rows, partial(_encode_result, numbers, request.model, version))


def _encode_result(
    form: Callable[[str, Version, Answers], object], name: str, version: Version, answers: Answers
) -> HttpResponse:
    return answer({"result": form(name, version, answers)})


_VERBS = {"predict": predict, "classify": classify, "regress": regress}


def classes(name: str, version: Version, found: Answers) -> list[list[tuple[str, float]]]:
    """For each row of the answers the labels with their scores, the best first, if the model has labels."""
    labels = _labels(name, version)
    result = []
    for scores in found["scores"]:
        order = np.argsort(-scores, kind="stable")
        result.append([(labels[place], float(scores[place])) for place in order])
    return result


def _labels(name: str, version: Version) -> tuple[str, ...]:
    labels = version.predictor.bundle.labels
    if labels is None:
        raise RequestError(400, f"model {name!r} has no labels: use predict")
    return labels


def numbers(name: str, version: Version, found: Answers) -> Array:
    """One number for each row of the answers, if that is what the model gives."""
    return found[_number(name, version).name].reshape(-1)


def _number(name: str, version: Version) -> Field:
    outputs = version.predictor.bundle.signature.outputs
    if len(outputs) != 1 or outputs[0].shape not in ((), (1,)) or outputs[0].dtype == "string":
        raise RequestError(400, f"model {name!r} does not return one number per row: use predict")
    return outputs[0]


def _examples(request: HttpRequest, version: Version, settings: ServerSettings) -> InputRows:
    fields = version.inputs
    body = _read_object(request, fields, settings)
    examples, context = body.get("examples"), body.get("context") or {}
    limits.check_columns(examples, settings)
    if context and isinstance(examples, list):
        limits.check_context(len(orjson.dumps(context, option=OPTIONS)), len(examples), settings)
    examples, context = decode_base64(examples), decode_base64(context)
    if not isinstance(examples, list) or not examples or not all(isinstance(one, dict) for one in examples):
        raise RequestError(400, '"examples" must be a list of objects, at least one')
    if not isinstance(context, dict):
        raise RequestError(400, '"context" must be an object')
    return as_asked(fields, [{**context, **one} for one in examples])


def _read_object(
    request: HttpRequest, fields: tuple[Field, ...], settings: ServerSettings
) -> dict[str, object]:
    limits.check_json(request.body, fields, settings)
    body = parse_object(request.body)
    name = body.get("signature_name") or SIGNATURE
    if name != SIGNATURE:
        raise RequestError(
            400, f'"signature_name" {name!r} is not there; the only signature is {SIGNATURE!r}'
        )
    return body


def decode_base64(value: object, depth: int = 0) -> object:
    """Replace `{"b64": "..."}` by its bytes, wherever it stands."""
    if depth > _DEEPEST:
        raise RequestError(400, f"the values are nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        if value.keys() == {"b64"} and isinstance(value["b64"], str):
            try:
                return base64.b64decode(value["b64"], validate=True)
            except (binascii.Error, ValueError):
                raise RequestError(400, '"b64" is not valid base64') from None
        return {name: decode_base64(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list) and _holds_objects(value, depth):
        return [decode_base64(one, depth + 1) for one in value]
    return value


def _holds_objects(value: object, depth: int) -> bool:
    """Whether there is an object inside; only first elements are looked at, not each number of an image."""
    while isinstance(value, list) and value:
        value, depth = value[0], depth + 1
        if depth > _DEEPEST:
            raise RequestError(400, f"the values are nested more than {_DEEPEST} deep")
    return isinstance(value, dict)
