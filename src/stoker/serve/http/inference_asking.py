"""JSON schemas of a model's inputs and outputs over the Open Inference Protocol."""

from __future__ import annotations

from stoker.serve.bundle import SIGNATURE
from stoker.serve.http.routing import Asking
from stoker.serve.http.schemas import Content, Schema, any_of, of_json, of_list, of_object
from stoker.serve.plane.inference_tensors import TYPES
from stoker.serve.plane.served import ServedSignature
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.plane.versions import Version

LENGTH = "Inference-Header-Content-Length"
TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_YES: Schema = {"type": "boolean"}
_ANSWERED_TYPE: Schema = {"enum": list(TYPES)}
_LENGTH_HEADER: Schema = {
    **_COUNT,
    "description": "How many bytes of the body are JSON; the bytes of tensors follow. If absent, all are JSON.",
}
SERVER: Schema = of_object(name=TEXT, version=TEXT, extensions=of_list(TEXT))
_DESCRIBED: Schema = of_list(of_object(name=TEXT, datatype=TEXT, shape=of_list({"type": "integer"})))
METADATA: Schema = of_object(
    name=TEXT, versions=of_list(TEXT), platform=TEXT, inputs=_DESCRIBED, outputs=_DESCRIBED
)
_CONFIGURED: Schema = of_list(of_object(name=TEXT, data_type=TEXT, dims=of_list({"type": "integer"})))
CONFIG: Schema = of_object(
    name=TEXT, platform=TEXT, backend=TEXT, max_batch_size=_COUNT, input=_CONFIGURED, output=_CONFIGURED
)
_TIMES: Schema = of_object(count=_COUNT, ns=_COUNT)
STATISTICS: Schema = of_object(
    model_stats=of_list(
        of_object(
            name=TEXT,
            version=TEXT,
            inference_count=_COUNT,
            execution_count=_COUNT,
            inference_stats=of_object(success=_TIMES, fail=_TIMES, compute_infer=_TIMES),
        )
    )
)
REPOSITORY: Schema = of_list(of_object(name=TEXT, version=TEXT, state=TEXT, reason=TEXT))


def infer_asking(version: Version, settings: ServerSettings) -> Asking:
    """Describe tensors of any signature, as JSON or with their bytes after the JSON."""
    body = any_of([_body(one, settings) for one in version.signatures.values()])
    answer = of_object(model_name=TEXT, model_version=TEXT, outputs=of_list(_answered_tensor()))
    binary: Content = {"application/octet-stream": {}}
    return Asking(
        {**of_json(body), **binary},
        {**of_json(answer), **binary},
        request_headers={LENGTH: _LENGTH_HEADER},
        response_headers={
            LENGTH: {**_LENGTH_HEADER, "description": "Sent with an answer that has binary tensors."}
        },
    )


def _optional(schema: Schema) -> Schema:
    """Return the schema, or null, which some clients send for what they leave out."""
    return {"anyOf": [schema, {"type": "null"}]}


def _parameters(**known: Schema) -> Schema:
    return {"type": "object", "properties": known}


def _body(signature: ServedSignature, settings: ServerSettings) -> Schema:
    usual = signature.name == SIGNATURE
    naming: Schema = {"enum": [SIGNATURE, ""]} if usual else {"const": signature.name}
    parameters = _parameters(signature_name=naming, binary_data_output=_YES)
    parameters = _optional(parameters) if usual else {**parameters, "required": ["signature_name"]}
    count = len(signature.inputs)
    names: list[object] = [one.name for one in signature.inputs]
    tensor: Schema = {
        "type": "object",
        "properties": {
            "name": {"enum": names},
            "datatype": {"enum": list(TYPES)},
            "shape": of_list({**_COUNT, "maximum": settings.body_bytes}, maxItems=32),
            "data": {"type": "array", "description": "Values in row order, flat or nested."},
            "parameters": _optional(_parameters(binary_data_size=_COUNT)),
        },
        "required": ["name", "datatype", "shape"],
    }
    return {
        "type": "object",
        "properties": {
            "id": _optional(TEXT),
            "parameters": parameters,
            "inputs": of_list(tensor, minItems=count, maxItems=count),
            "outputs": _optional(of_list(_wanted_output(signature))),
        },
        "required": ["inputs"] if usual else ["inputs", "parameters"],
    }


def _wanted_output(signature: ServedSignature) -> Schema:
    return {
        "type": "object",
        "properties": {
            "name": {"enum": [one.name for one in signature.outputs]},
            "parameters": _optional(_parameters(binary_data=_YES, classification=_COUNT)),
        },
        "required": ["name"],
    }


def _answered_tensor() -> Schema:
    tensor = of_object(name=TEXT, datatype=_ANSWERED_TYPE, shape=of_list(_COUNT))
    return {
        **tensor,
        "anyOf": [{"required": ["data"]}, {"required": ["parameters"]}],
    }
