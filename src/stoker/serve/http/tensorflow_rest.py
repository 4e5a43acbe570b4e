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
from typing import Any

import numpy as np
import orjson

from stoker.data.csv_layout import guess_separator
from stoker.data.csv_rows import AT_END, CsvRepairs, fill_rows, judge_rows
from stoker.serve.examples import as_bytes
from stoker.serve.foreign.examples import serialize_example
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
from stoker.serve.http.schemas import of_json
from stoker.serve.http.tensorflow_asking import classify_asking, predict_asking, regress_asking
from stoker.serve.http.tensorflow_metadata import METADATA, STATUS, describe_metadata, describe_status
from stoker.serve.plane import limits
from stoker.serve.plane.answering import DataPlane, Parsed
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.served import EXAMPLES, Answers, ServedSignature
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.plane.versions import Version
from stoker.serve.rows import InputRows
from stoker.serve.signature import Array, Field
from stoker.serve.table_cells import is_table

_DEEPEST = 32
# The number of characters of a CSV file from which its layout is detected.
_PEEK = 1 << 16
_BYTES = "_bytes"
# Inputs of any size, for when it is not known which signature is asked.
_ANY = (Field("", "float32", (None,), ""),)


def tell_status(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Say which versions answer: all, or the one that the path names."""
    every = named.version is None and named.label is None
    found = plane.models.working_versions(named.model) if every else [named.find_version(plane)]
    return answer({"model_version_status": [describe_status(one) for one in found]})


def tell_metadata(request: HttpRequest, plane: DataPlane, named: ModelPath) -> HttpResponse:
    """Describe the inputs and outputs of a version."""
    return answer(describe_metadata(named.model, named.find_version(plane)))


def predict(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """Answer rows (`instances`) or columns (`inputs`) in the same form, and rows of a CSV file as rows."""
    if request.headers.get(b"content-type", b"").startswith(b"text/csv"):
        signature = version.signature()
        cells = _csv_rows(request.body, settings, judged=is_table(signature.inputs))
        return Parsed(signature, signature.read_rows(cells, may_hold_booleans=False), _in_rows)
    signature, body = _read_object(request, version, settings)
    fields = signature.inputs
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
    alone = f'"{name}" must hold rows, not the values of a single one'
    rows = signature.read_rows(given, alone, may_hold_booleans=may_hold_booleans(request.body))
    return Parsed(signature, rows, _in_rows if in_rows else _in_columns)


def _csv_rows(body: bytes, settings: ServerSettings, *, judged: bool) -> list[dict[str, object]]:
    """Read the rows of a CSV file with a header. A table's rows are `judged` as in training, without totals."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not UTF-8: send CSV as UTF-8") from None
    sign = guess_separator(text[:_PEEK], ",")
    plain = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
    found = judge_rows(plain, CsvRepairs()) if judged else fill_rows(plain)
    rows: list[dict[str, object]] = []
    try:
        header, _ = next(found, ([], None))
        for number, (cells, why) in enumerate(found, 1):
            if why is None:
                rows.append(dict(zip(header, cells, strict=True)))
                limits.check_rows(len(rows), settings)
            elif why not in AT_END:
                # If this row were left out, the answers of later rows would move up.
                raise RequestError(400, f"row {number} cannot be answered: {why}")
    except csv.Error as error:
        raise RequestError(400, f"the body is not CSV: {error}") from None
    if not rows:
        raise RequestError(400, "the body needs a header and at least one row")
    return rows


def _in_rows(answers: Answers) -> HttpResponse:
    found = {name: _json_values(name, one) for name, one in answers.items()}
    counts = {one.shape[:1] for one in answers.values()}
    if len(counts) != 1 or () in counts:
        shapes = ", ".join(f"{name} {list(one.shape)}" for name, one in answers.items())
        raise RequestError(400, f'the outputs have no row for each instance ({shapes}): use "inputs"')
    if len(found) == 1:
        return answer({"predictions": next(iter(found.values()))})
    columns = list(found.values())
    return answer({"predictions": [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]})


def _in_columns(answers: Answers) -> HttpResponse:
    found = {name: _json_values(name, one) for name, one in answers.items()}
    return answer({"outputs": found if len(found) > 1 else next(iter(found.values()))})


def _json_values(name: str, array: Array) -> Any:
    """Return values as JSON takes them; as in TensorFlow Serving, an output's name tells that its strings are bytes."""
    if array.dtype == object and name.endswith(_BYTES):
        return _encode_base64(array.tolist())
    return plain_values(array)


def _encode_base64(value: object) -> object:
    if isinstance(value, list):
        return [_encode_base64(one) for one in value]
    return {"b64": base64.b64encode(as_bytes(value)).decode("ascii")}


def _instances(fields: tuple[Field, ...], given: object) -> object:
    if not isinstance(given, list) or not given:
        raise RequestError(400, '"instances" must be a list with at least one row')
    if isinstance(given[0], dict):
        return given
    if len(fields) != 1:
        named = ", ".join(str(field) for field in fields)
        raise RequestError(
            400,
            f"an instance must be an object with {named or 'nothing in it'}; got {type(given[0]).__name__}",
        )
    return {fields[0].name: given}


def classify(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """Answer with labels and their scores, the best first."""
    signature, rows = _examples(request, version, settings, lambda one: one.check_classifies())
    return Parsed(signature, rows, lambda answers: _encode_results(version, signature.rank_classes(answers)))


def regress(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """Answer with one number for each example."""
    signature, rows = _examples(request, version, settings, lambda one: one.check_regresses())
    return Parsed(signature, rows, lambda answers: _encode_results(version, signature.take_numbers(answers)))


def _encode_results(version: Version, found: object) -> HttpResponse:
    """Answer under "results", as TensorFlow Serving does. Its documentation says "result", as bundles did at first."""
    return answer({"results": found} if version.bundle is None else {"result": found, "results": found})


def _examples(
    request: HttpRequest, version: Version, settings: ServerSettings, check: Callable[[ServedSignature], None]
) -> tuple[ServedSignature, InputRows]:
    signature, body = _read_object(request, version, settings)
    check(signature)
    examples, context = body.get("examples"), body.get("context")
    context = {} if context is None else context
    limits.check_columns(examples, settings)
    if context and isinstance(examples, list):
        limits.check_context(len(orjson.dumps(context, option=OPTIONS)), len(examples), settings)
    examples, context = decode_base64(examples), decode_base64(context)
    if not isinstance(examples, list) or not examples or not all(isinstance(one, dict) for one in examples):
        raise RequestError(400, '"examples" must be a list of objects, at least one')
    if not isinstance(context, dict):
        raise RequestError(400, '"context" must be an object')
    whole = [{**context, **one} for one in examples]
    if not signature.takes_examples:
        return signature, signature.read_rows(whole, may_hold_booleans=may_hold_booleans(request.body))
    serialized = np.empty(len(whole), object)
    serialized[:] = [serialize_example(one) for one in whole]
    return signature, signature.read_rows({EXAMPLES: serialized})


def _read_object(
    request: HttpRequest, version: Version, settings: ServerSettings
) -> tuple[ServedSignature, dict[str, object]]:
    limits.check_json(request.body, version.inputs or _ANY, settings)
    body = parse_object(request.body)
    name = body.get("signature_name")
    if name is not None and not isinstance(name, str):
        raise RequestError(400, '"signature_name" must be a string')
    return version.signature(name or ""), body


def decode_base64(value: object, depth: int = 0) -> object:
    """Replace `{"b64": "..."}` with its bytes, wherever it stands."""
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
    """Return whether there may be objects inside. Only first elements are examined, not each number of an image."""
    while isinstance(value, list) and value:
        value, depth = value[0], depth + 1
        if depth > _DEEPEST:
            raise RequestError(400, f"the values are nested more than {_DEEPEST} deep")
    return value is None or isinstance(value, dict | str)  # texts and bytes may stand next to each other


_BASES = tuple(f"/v1/models/{{model}}{one}" for one in ("", "/versions/{version}", "/labels/{label}"))
ROUTES = tuple(
    route
    for base in _BASES
    for route in (
        Route("GET", base, "Which versions answer", tell_status, of_json(STATUS)),
        Route("GET", f"{base}/metadata", "The model's inputs and outputs", tell_metadata, of_json(METADATA)),
        Route("POST", f"{base}:predict", "Predict", ask_model(predict), asking=predict_asking),
        Route("POST", f"{base}:classify", "Classify examples", ask_model(classify), asking=classify_asking),
        Route(
            "POST", f"{base}:regress", "A number for each example", ask_model(regress), asking=regress_asking
        ),
    )
)
