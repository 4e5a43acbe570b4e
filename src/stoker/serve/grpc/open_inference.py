"""The Open Inference Protocol over gRPC, with the extensions of Triton that its client uses."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import numpy as np
from google.protobuf.json_format import ParseDict

from stoker.serve.examples import as_bytes
from stoker.serve.grpc.calls import GrpcService, StreamWork, Work
from stoker.serve.grpc.messages import INFERENCE, message_class
from stoker.serve.plane import limits
from stoker.serve.plane.answering import Inquiry, Parsed, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.inference_tensors import (
    EXTENSIONS,
    NAMES,
    PLATFORM,
    TYPES,
    SentTensor,
    WantedOutput,
    choose_outputs,
    count_statistics,
    describe_config,
    list_repository,
    pack_values,
    shape_of,
)
from stoker.serve.plane.served import Answers
from stoker.serve.plane.versions import Version
from stoker.serve.signature import Array, Field
from stoker.tf_internals.types import ProtoMessage
from stoker.units import quantity
from stoker.version import __version__

# The field of the contents that holds each type; other types go as raw bytes only.
_CONTENTS = {
    "BOOL": "bool_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}  # fmt: skip


class InferenceService(GrpcService):
    """The calls live, ready, metadata and infer; configuration, statistics and the repository's index."""

    name = f"{INFERENCE}.GRPCInferenceService"

    def calls(self) -> dict[str, Work]:
        return {
            "ServerLive": self.tell_live,
            "ServerReady": self.tell_ready,
            "ModelReady": self.tell_model_ready,
            "ServerMetadata": self.describe_server,
            "ModelMetadata": self.describe_model,
            "ModelInfer": self.infer,
            "ModelConfig": self.tell_config,
            "ModelStatistics": self.tell_statistics,
            "RepositoryIndex": self.list_models,
        }

    def streams(self) -> dict[str, StreamWork]:
        return {"ModelStreamInfer": self.infer_in_stream}

    def name_model(self, request: ProtoMessage) -> str:
        return str(getattr(request, "model_name", "") or getattr(request, "name", ""))

    async def tell_live(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Say that the server runs."""
        response.live = True

    async def tell_ready(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Say whether all models answer."""
        response.ready = self.plane.is_serving()

    async def tell_model_ready(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Say whether a model answers."""
        self.plane.models.version(request.name, request.version or None)
        response.ready = self.plane.is_ready

    async def describe_server(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Say who answers."""
        response.name, response.version = "stoker", __version__
        response.extensions.extend(EXTENSIONS)

    async def describe_model(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Describe the inputs and outputs of a model."""
        version = self.plane.models.version(request.name, request.version or None)
        signature = version.signature()
        response.name, response.platform = request.name, PLATFORM
        response.versions.extend(str(one.number) for one in self.plane.models.versions(request.name))
        for fields, described in ((signature.inputs, response.inputs), (signature.outputs, response.outputs)):
            for field in fields:
                datatype = NAMES.get(field.dtype, field.dtype)
                described.add(name=field.name, datatype=datatype, shape=shape_of(field))

    async def tell_config(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Say how a model is set up."""
        version = self.plane.models.version(request.name, request.version or None)
        ParseDict(describe_config(request.name, version, self.settings.batch), response.config)

    async def tell_statistics(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Say what was answered so far."""
        models = self.plane.models
        if request.name:
            models.version(request.name, request.version or None)
        for name in [request.name] if request.name else models.names():
            for one in count_statistics(models, name):
                ParseDict(one, response.model_stats.add())

    async def list_models(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """List all versions of all models."""
        for one in list_repository(self.plane.models):
            response.models.add(**one)

    async def infer(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Answer tensors with tensors."""
        version = self.plane.models.version(request.model_name, request.model_version or None)
        inquiry.id = request.id

        def parse(version: Version) -> Parsed[None]:
            response.Clear()
            named = (
                request.parameters["signature_name"].string_param
                if "signature_name" in request.parameters
                else ""
            )
            signature = version.signature(named)
            rows = signature.read_rows(self._read_inputs(request))
            wanted = _choose_outputs(request, signature.outputs)
            return Parsed(signature, rows, lambda answers: _fill(request, response, version, wanted, answers))

        await self.plane.ask(
            inquiry,
            Question(request.model_name, version, request.ByteSize(), parse, bool(request.model_version)),
        )

    async def infer_in_stream(self, inquiry: Inquiry, request: ProtoMessage) -> AsyncIterator[ProtoMessage]:
        """Answer one request of a stream; an error ends only that request."""
        answer = message_class(f"{INFERENCE}.ModelStreamInferResponse")()
        status = 200
        try:
            await self.infer(inquiry, request, answer.infer_response)
        except Exception as fault:  # noqa: BLE001 - one request must not take the stream with it
            error = self.plane.explain(fault, inquiry)
            status, answer.error_message = error.status, error.line
            answer.infer_response.id = request.id
        self.plane.count(inquiry, status, request.ByteSize())
        yield answer

    def _read_inputs(self, request: ProtoMessage) -> dict[str, Array]:
        raw = request.raw_input_contents
        if raw and len(raw) != len(request.inputs):
            raise RequestError(
                400,
                f"the request has {quantity(len(request.inputs), 'input')}, but raw contents for {len(raw)}",
            )
        found: dict[str, Array] = {}
        for place, one in enumerate(request.inputs):
            if one.name in found:
                raise RequestError(400, f"the input {one.name!r} is given twice")
            if one.datatype not in TYPES:
                raise RequestError(400, f"{one.name!r}: datatype must be one of {', '.join(TYPES)}")
            tensor = SentTensor(one.name, TYPES[one.datatype], list(one.shape), None, None)
            limits.check_shape(one.name, tensor.shape, tensor.width, self.settings)
            if raw and one.contents.ListFields():
                raise RequestError(400, f"{one.name!r} has both contents and raw_input_contents")
            found[one.name] = tensor.from_bytes(raw[place]) if raw else _read_contents(one, tensor)
        return found


def _read_contents(one: ProtoMessage, tensor: SentTensor) -> Array:
    """Read values that came in the field of their type."""
    if one.datatype not in _CONTENTS:
        raise RequestError(400, f"{one.name!r}: {one.datatype} must come in raw_input_contents")
    values = getattr(one.contents, _CONTENTS[one.datatype])
    count = math.prod(tensor.shape)
    if len(values) != count:
        raise RequestError(
            400, f"{one.name!r}: shape {tensor.shape} takes {quantity(count, 'value')}, got {len(values)} in contents."
            f"{_CONTENTS[one.datatype]}",
        )  # fmt: skip
    array = np.empty(count, object) if tensor.dtype == "string" else np.array(values)
    if tensor.dtype == "string":
        array[:] = list(values)
    return array.reshape(tensor.shape)


def _choose_outputs(request: ProtoMessage, fields: tuple[Field, ...]) -> list[WantedOutput]:
    asked: dict[str, tuple[bool, object]] = {}
    for one in request.outputs:
        if one.name in asked:
            raise RequestError(400, f"the output {one.name!r} is asked for twice")
        classes = one.parameters["classification"].int64_param if "classification" in one.parameters else 0
        asked[one.name] = (False, int(classes))
    return choose_outputs(fields, asked, every=False)


def _fill(
    request: ProtoMessage,
    response: ProtoMessage,
    version: Version,
    wanted: list[WantedOutput],
    answers: Answers,
) -> None:
    """Fill the response: raw bytes if the request had raw bytes, else typed values if their type has a field."""
    response.model_name, response.model_version, response.id = (
        request.model_name,
        str(version.number),
        request.id,
    )
    shaped = [(one.field.name, *one.shape_answer(version, answers[one.field.name])) for one in wanted]
    is_raw = bool(request.raw_input_contents) or any(datatype not in _CONTENTS for _, datatype, _ in shaped)
    for name, datatype, array in shaped:
        output = response.outputs.add(name=name, datatype=datatype, shape=array.shape)
        if is_raw:
            response.raw_output_contents.append(pack_values(array))
            continue
        values = array.ravel().tolist()
        contents = getattr(output.contents, _CONTENTS[datatype])
        contents.extend(map(as_bytes, values) if datatype == "BYTES" else values)
