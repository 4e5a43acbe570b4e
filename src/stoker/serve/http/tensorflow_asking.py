"""JSON schemas of a model's inputs and outputs over TensorFlow Serving's REST API."""

from __future__ import annotations

from collections.abc import Callable

from stoker.serve.bundle import SIGNATURE
from stoker.serve.http.routing import Asking
from stoker.serve.http.schemas import (
    Schema,
    any_of,
    input_column,
    input_row,
    input_value,
    of_json,
    of_list,
    of_object,
    output_column,
    output_value,
)
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.served import ServedSignature
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.plane.versions import Version
from stoker.serve.table_cells import is_table

_NUMBER: Schema = {"type": ["number", "null"]}
_RANKING: Schema = of_list(
    of_list({"type": ["string", "number", "null"]}, minItems=2, maxItems=2),
    description="Labels with their scores, the best first.",
)


def predict_asking(version: Version, settings: ServerSettings) -> Asking:
    """Describe rows (`instances`) or columns (`inputs`) of any signature."""
    bodies = [body for one in version.signatures.values() for body in _predict_bodies(one, settings)]
    answers = [answer for one in version.signatures.values() for answer in _predict_answers(one)]
    content = dict(of_json(any_of(bodies)))
    if is_table(version.inputs):
        content["text/csv"] = {"type": "string", "description": "Rows of a CSV file with its header."}
    return Asking(content, of_json(any_of(answers)))


def classify_asking(version: Version, settings: ServerSettings) -> Asking | None:
    """Describe examples, each answered with labels and scores."""
    return _examples_asking(version, settings, lambda one: one.check_classifies(), _RANKING)


def regress_asking(version: Version, settings: ServerSettings) -> Asking | None:
    """Describe examples, each answered with a number."""
    return _examples_asking(version, settings, lambda one: one.check_regresses(), _NUMBER)


def _naming(signature: ServedSignature) -> Schema:
    """Describe the `signature_name` that means this signature."""
    return {"enum": [SIGNATURE, "", None]} if signature.name == SIGNATURE else {"const": signature.name}


def _body(signature: ServedSignature, **properties: Schema) -> Schema:
    """Describe a request's JSON object; the first of the properties is required."""
    name, *_ = properties
    required = [name] if signature.name == SIGNATURE else [name, "signature_name"]
    return {
        "type": "object",
        "properties": {"signature_name": _naming(signature), **properties},
        "required": required,
    }


def _predict_bodies(signature: ServedSignature, settings: ServerSettings) -> list[Schema]:
    fields = signature.inputs
    most = {"minItems": 1, "maxItems": settings.rows}
    rows: list[Schema] = [of_list(input_row(signature, settings), **most)]
    columns: list[Schema] = [
        {
            "type": "object",
            "properties": {one.name: input_column(one, settings) for one in fields},
            **(
                {}
                if is_table(fields)
                else {"required": [one.name for one in fields], "additionalProperties": False}
            ),
        }
    ]
    if len(fields) == 1:
        rows.append(of_list(input_value(fields[0], settings), **most))
        columns.append(input_column(fields[0], settings))
    return [
        {**_body(signature, instances=any_of(rows)), "not": {"required": ["inputs"]}},
        {**_body(signature, inputs=any_of(columns)), "not": {"required": ["instances"]}},
    ]


def _predict_answers(signature: ServedSignature) -> list[Schema]:
    fields = signature.outputs
    row = of_object(**{one.name: output_value(one) for one in fields})
    columns = of_object(**{one.name: output_column(one) for one in fields})
    if len(fields) == 1:
        row, columns = output_value(fields[0]), output_column(fields[0])
    return [of_object(predictions=of_list(row)), of_object(outputs=columns)]


def _examples_asking(
    version: Version, settings: ServerSettings, check: Callable[[ServedSignature], None], result: Schema
) -> Asking | None:
    fitting = [one for one in version.signatures.values() if _passes(check, one)]
    if not fitting:
        return None
    bodies = []
    for one in fitting:
        example: Schema = {"type": "object"}
        if not one.takes_examples:
            example = input_row(one, settings, partial=True)  # the context may have the rest
        examples = of_list(example, minItems=1, maxItems=settings.rows)
        bodies.append(_body(one, examples=examples, context={"anyOf": [example, {"type": "null"}]}))
    names = ("results",) if version.bundle is None else ("result", "results")
    return Asking(of_json(any_of(bodies)), of_json(of_object(**dict.fromkeys(names, of_list(result)))))


def _passes(check: Callable[[ServedSignature], None], signature: ServedSignature) -> bool:
    try:
        check(signature)
    except RequestError:
        return False
    return True
