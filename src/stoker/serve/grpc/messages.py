"""The messages of PredictionService and ModelService, as TensorFlow Serving numbers their fields.

The package that has them depends on TensorFlow's full build, so they are described here, in a pool of their own: a
process may have that package, too. Enumerations are plain numbers here, which are the same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

PACKAGE = "tensorflow.serving"
_PLAIN = {"int64": 3, "int32": 5, "float": 2, "string": 9}
_MESSAGE = 11
_ONE, _MANY = 1, 3
_NEEDS = (
    type(tf.make_tensor_proto(0)).DESCRIPTOR.file,
    wrappers_pb2.DESCRIPTOR,
    any_pb2.DESCRIPTOR,
    tf.train.Example.DESCRIPTOR.file,
    tf.compat.v1.MetaGraphDef.DESCRIPTOR.file,
)


class _Field(NamedTuple):
    """One field; `many` of them, a `map` from strings, or one of a `choice`."""

    name: str
    number: int
    of: str
    many: bool = False
    map: bool = False
    choice: str = ""


_SPEC = _Field("model_spec", 1, "ModelSpec")
_SPEC_SECOND = _Field("model_spec", 2, "ModelSpec")
_INPUT = _Field("input", 2, "Input")
MESSAGES: dict[str, list[_Field]] = {
    "ModelSpec": [
        _Field("name", 1, "string"),
        _Field("version", 2, "google.protobuf.Int64Value", choice="version_choice"),
        _Field("version_label", 4, "string", choice="version_choice"),
        _Field("signature_name", 3, "string"),
    ],
    "PredictRequest": [
        _SPEC,
        _Field("inputs", 2, "tensorflow.TensorProto", map=True),
        _Field("output_filter", 3, "string", many=True),
    ],
    "PredictResponse": [_SPEC_SECOND, _Field("outputs", 1, "tensorflow.TensorProto", map=True)],
    "ExampleList": [_Field("examples", 1, "tensorflow.Example", many=True)],
    "ExampleListWithContext": [
        _Field("examples", 1, "tensorflow.Example", many=True),
        _Field("context", 2, "tensorflow.Example"),
    ],
    "Input": [
        _Field("example_list", 1, "ExampleList", choice="kind"),
        _Field("example_list_with_context", 2, "ExampleListWithContext", choice="kind"),
    ],
    "Class": [_Field("label", 1, "string"), _Field("score", 2, "float")],
    "Classifications": [_Field("classes", 1, "Class", many=True)],
    "ClassificationResult": [_Field("classifications", 1, "Classifications", many=True)],
    "ClassificationRequest": [_SPEC, _INPUT],
    "ClassificationResponse": [_SPEC_SECOND, _Field("result", 1, "ClassificationResult")],
    "Regression": [_Field("value", 1, "float")],
    "RegressionResult": [_Field("regressions", 1, "Regression", many=True)],
    "RegressionRequest": [_SPEC, _INPUT],
    "RegressionResponse": [_SPEC_SECOND, _Field("result", 1, "RegressionResult")],
    "InferenceTask": [_SPEC, _Field("method_name", 2, "string")],
    "InferenceResult": [
        _SPEC,
        _Field("classification_result", 2, "ClassificationResult", choice="result"),
        _Field("regression_result", 3, "RegressionResult", choice="result"),
    ],
    "MultiInferenceRequest": [_Field("tasks", 1, "InferenceTask", many=True), _INPUT],
    "MultiInferenceResponse": [_Field("results", 1, "InferenceResult", many=True)],
    "SignatureDefMap": [_Field("signature_def", 1, "tensorflow.SignatureDef", map=True)],
    "GetModelMetadataRequest": [_SPEC, _Field("metadata_field", 2, "string", many=True)],
    "GetModelMetadataResponse": [_SPEC, _Field("metadata", 2, "google.protobuf.Any", map=True)],
    "StatusProto": [_Field("error_code", 1, "int32"), _Field("error_message", 2, "string")],
    "ModelVersionStatus": [
        _Field("version", 1, "int64"),
        _Field("state", 2, "int32"),
        _Field("status", 3, "StatusProto"),
    ],
    "GetModelStatusRequest": [_SPEC],
    "GetModelStatusResponse": [_Field("model_version_status", 1, "ModelVersionStatus", many=True)],
}


def _add_file(pool: descriptor_pool.DescriptorPool, file: FileDescriptor, known: set[str]) -> None:
    for other in file.dependencies:
        _add_file(pool, other, known)
    if file.name not in known:
        known.add(file.name)
        copy = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(copy)
        pool.Add(copy)


def _set_type(field: descriptor_pb2.FieldDescriptorProto, of: str) -> None:
    if of in _PLAIN:
        field.type = _PLAIN[of]
    else:
        field.type = _MESSAGE
        field.type_name = f".{of}" if "." in of else f".{PACKAGE}.{of}"


def _add(message: descriptor_pb2.DescriptorProto, given: _Field) -> None:
    many = given.many or given.map
    field = message.field.add(name=given.name, number=given.number, label=_MANY if many else _ONE)
    if given.choice:
        choices = [one.name for one in message.oneof_decl]
        if given.choice not in choices:
            message.oneof_decl.add(name=given.choice)
            choices.append(given.choice)
        field.oneof_index = choices.index(given.choice)
    if not given.map:
        _set_type(field, given.of)
        return
    # A map is a list of entries.
    words = "".join(word.capitalize() for word in given.name.split("_"))
    entry = message.nested_type.add(name=f"{words}Entry")
    entry.options.map_entry = True
    _set_type(entry.field.add(name="key", number=1, label=_ONE), "string")
    _set_type(entry.field.add(name="value", number=2, label=_ONE), given.of)
    field.type = _MESSAGE
    field.type_name = f".{PACKAGE}.{message.name}.{entry.name}"


def _classes() -> dict[str, type[Message]]:
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    file = descriptor_pb2.FileDescriptorProto(name="stoker/serving.proto", package=PACKAGE, syntax="proto3")
    for needed in _NEEDS:
        _add_file(pool, needed, known)
        file.dependency.append(needed.name)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add(message, field)
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in MESSAGES
    }


CLASSES = _classes()
