"""The messages of PredictionService, as TensorFlow Serving numbers their fields.

The package that has them depends on TensorFlow's full build, so they are described here, in a pool of their own: a
process that has that package, too, does not see them twice.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2
from tensorflow.core.framework import tensor_pb2

_TEXT, _MESSAGE = 9, 11
_ONE, _MANY = 1, 3
_PACKAGE = "tensorflow.serving"


def _with_all_it_needs(pool: Any, file: Any, known: set[str]) -> None:
    for other in file.dependencies:
        _with_all_it_needs(pool, other, known)
    if file.name not in known:
        known.add(file.name)
        copy = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(copy)
        pool.Add(copy)


def _field(message: Any, name: str, number: int, kind: int, of: str = "", label: int = _ONE) -> Any:
    field = message.field.add(name=name, number=number, type=kind, label=label)
    if of:
        field.type_name = f".{of}"
    return field


def _tensors(message: Any, name: str, number: int) -> None:
    """A map from names to tensors, which is a list of entries."""
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    _field(entry, "key", 1, _TEXT)
    _field(entry, "value", 2, _MESSAGE, "tensorflow.TensorProto")
    _field(message, name, number, _MESSAGE, f"{_PACKAGE}.{message.name}.{entry.name}", _MANY)


def _described() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="stoker/predict.proto", package=_PACKAGE, syntax="proto3")
    file.dependency.extend([tensor_pb2.DESCRIPTOR.name, wrappers_pb2.DESCRIPTOR.name])
    spec = file.message_type.add(name="ModelSpec")
    spec.oneof_decl.add(name="version_choice")
    _field(spec, "name", 1, _TEXT)
    _field(spec, "version", 2, _MESSAGE, "google.protobuf.Int64Value").oneof_index = 0
    _field(spec, "version_label", 4, _TEXT).oneof_index = 0
    _field(spec, "signature_name", 3, _TEXT)
    request = file.message_type.add(name="PredictRequest")
    _field(request, "model_spec", 1, _MESSAGE, f"{_PACKAGE}.ModelSpec")
    _tensors(request, "inputs", 2)
    _field(request, "output_filter", 3, _TEXT, label=_MANY)
    response = file.message_type.add(name="PredictResponse")
    _field(response, "model_spec", 2, _MESSAGE, f"{_PACKAGE}.ModelSpec")
    _tensors(response, "outputs", 1)
    return file


def _classes() -> tuple[Any, Any]:
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    for file in (tensor_pb2.DESCRIPTOR, wrappers_pb2.DESCRIPTOR):
        _with_all_it_needs(pool, file, known)
    pool.Add(_described())
    found = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("PredictRequest", "PredictResponse")
    ]
    return found[0], found[1]


PredictRequest, PredictResponse = _classes()
