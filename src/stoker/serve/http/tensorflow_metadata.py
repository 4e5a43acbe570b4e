"""A model's versions and signatures as TensorFlow Serving's REST API describes them, and their schemas."""

from __future__ import annotations

from stoker.serve.http.schemas import Schema, of_list, of_object
from stoker.serve.plane.versions import Version
from stoker.tf_internals.types import ProtoMessage

_TEXT: Schema = {"type": "string"}
STATUS: Schema = of_object(
    model_version_status=of_list(
        of_object(version=_TEXT, state=_TEXT, status=of_object(error_code=_TEXT, error_message=_TEXT))
    )
)
_TENSORS: Schema = {
    "type": "object",
    "additionalProperties": of_object(
        dtype=_TEXT,
        name=_TEXT,
        tensor_shape=of_object(
            dim=of_list(of_object(size=_TEXT, name=_TEXT)), unknown_rank={"type": "boolean"}
        ),
    ),
}
_SIGNATURES: Schema = {
    "type": "object",
    "additionalProperties": of_object(inputs=_TENSORS, outputs=_TENSORS, method_name=_TEXT),
}
METADATA: Schema = of_object(
    model_spec=of_object(name=_TEXT, signature_name=_TEXT, version=_TEXT),
    metadata=of_object(signature_def=of_object(signature_def=_SIGNATURES)),
)


def describe_status(version: Version) -> dict[str, object]:
    """Describe the state of a version."""
    status = {"error_code": "OK", "error_message": ""}
    return {"version": str(version.number), "state": "AVAILABLE", "status": status}


def describe_metadata(name: str, version: Version) -> dict[str, object]:
    """Describe the signatures in TensorFlow Serving's form."""
    described = {key: _signature_def(one.definition()) for key, one in version.signatures.items()}
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
        "metadata": {"signature_def": {"signature_def": described}},
    }


def _signature_def(definition: ProtoMessage) -> dict[str, object]:
    return {
        "inputs": {name: _tensor_info(one) for name, one in definition.inputs.items()},
        "outputs": {name: _tensor_info(one) for name, one in definition.outputs.items()},
        "method_name": definition.method_name,
        "defaults": {},
    }


def _tensor_info(info: ProtoMessage) -> dict[str, object]:
    shape = info.tensor_shape
    return {
        "dtype": type(info).DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number[info.dtype].name,
        "tensor_shape": {
            "dim": [{"size": str(one.size), "name": one.name} for one in shape.dim],
            "unknown_rank": shape.unknown_rank,
        },
        "name": info.name,
    }
