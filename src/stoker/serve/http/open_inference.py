"""The Open Inference Protocol, version 2 (KServe, Triton): JSON, and tensors as plain bytes behind it.

A request that does not fit raises `RequestError`.

GET  /v2, /v2/health/live, /v2/health/ready, /v2/models/NAME[/versions/V][/ready]
POST /v2/models/NAME[/versions/V]/infer
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import partial

import numpy as np
import orjson

from stoker.serve.examples import as_bytes
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
from stoker.serve.rows import as_asked
from stoker.serve.signature import Array, Field
from stoker.version import __version__

TYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
    "BYTES": "string",
}  # fmt: skip
NAMES = {dtype: name for name, dtype in TYPES.items()}
_LENGTH = b"inference-header-content-length"
_DIGITS = 12


def route(request: HttpRequest, models: ServedModels) -> Routed:
    """The answer to anything below /v2, or what it asks of a model."""
    parts = request.path.strip("/").split("/")[1:]
    if not parts:
        return answer({"name": "stoker", "version": __version__, "extensions": ["binary_tensor_data"]})
    if parts in (["health", "live"], ["health", "ready"]):
        return answer({parts[1]: True})
    if parts[0] != "models" or len(parts) < 2:
        raise RequestError(404, f"there is nothing at {request.path}")
    request.model = parts[1]
    number = parts[3] if len(parts) > 3 and parts[2] == "versions" else None
    rest = parts[4:] if number else parts[2:]
    version = models.version(request.model, number)
    if rest == ["infer"]:
        if request.method != "POST":
            raise RequestError(405, "infer needs a POST request")
        parse = partial(infer, request, version, models.settings)
        return Question(request.model, version, len(request.body), parse)
    if rest == ["ready"]:
        return answer({"name": request.model, "ready": True})
    if rest:
        raise RequestError(404, f"there is nothing at {request.path}")
    return answer(metadata(request.model, models))


def metadata(name: str, models: ServedModels) -> dict[str, object]:
    """The signature in the protocol's form."""
    versions = models.versions(name)
    signature = versions[0].predictor.bundle.signature
    return {
        "name": name,
        "versions": [str(one.number) for one in versions],
        "platform": "tensorflow_savedmodel",
        "inputs": [_describe(field) for field in signature.inputs],
        "outputs": [_describe(field) for field in signature.outputs],
    }


def _describe(field: Field) -> dict[str, object]:
    shape = [-1, *(-1 if size is None else size for size in field.shape)]
    return {"name": field.name, "datatype": NAMES[field.dtype], "shape": shape}


def infer(request: HttpRequest, version: Version, settings: ServerSettings) -> Parsed[HttpResponse]:
    """Tensors in, tensors out."""
    fields = version.inputs
    head, binary = _split(request, fields, settings)
    rows = as_asked(fields, _read_inputs(head, binary, settings))
    wanted = _choose_outputs(head, version.predictor.bundle.signature.outputs)
    about: dict[str, object] = {"model_name": request.model, "model_version": str(version.number)}
    if isinstance(head.get("id"), str):
        about["id"] = head["id"]
    return Parsed(rows, partial(_encode, about, wanted))


def _encode(about: dict[str, object], wanted: list[tuple[Field, bool]], answers: Answers) -> HttpResponse:
    outputs: list[dict[str, object]] = []
    tail: list[bytes] = []
    for field, is_binary in wanted:
        array = answers[field.name]
        output: dict[str, object] = {
            "name": field.name,
            "datatype": NAMES[field.dtype],
            "shape": list(array.shape),
        }
        if is_binary:
            data = _pack(array)
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
    """The JSON of a request, and the bytes behind it."""
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


@dataclass(frozen=True, slots=True)
class _SentTensor:
    """An input as JSON describes it; its values are in `data`, or `size` bytes behind the JSON."""

    name: str
    dtype: str
    shape: list[int]
    data: object
    size: object

    @staticmethod
    def of(sent: object) -> _SentTensor:
        if not isinstance(sent, dict) or not isinstance(sent.get("name"), str):
            raise RequestError(400, 'an input must be an object with "name", "datatype", "shape" and "data"')
        name, shape, datatype = sent["name"], sent.get("shape"), sent.get("datatype")
        if not isinstance(shape, list) or not all(type(size) is int for size in shape):
            raise RequestError(400, f'{name!r}: "shape" must be a list of sizes')
        if not isinstance(datatype, str) or datatype not in TYPES:
            raise RequestError(400, f'{name!r}: "datatype" must be one of {", ".join(TYPES)}')
        size = _parameters(sent).get("binary_data_size")
        return _SentTensor(name, TYPES[datatype], shape, sent.get("data"), size)

    @property
    def width(self) -> int:
        """Bytes of one value; a string has at least its length."""
        return 4 if self.dtype == "string" else np.dtype(self.dtype).itemsize

    def from_json(self) -> Array:
        """Values flat or nested, in row order."""
        count = math.prod(self.shape)
        if not isinstance(self.data, list):
            raise RequestError(400, f'{self.name!r}: "data" must be a list')
        wrong_size = f"{self.name!r}: shape {self.shape} takes {count} values, got "
        if len(self.data) > count:
            raise RequestError(400, f"{wrong_size}{len(self.data)}")
        try:
            array = np.array(self.data, object if self.dtype == "string" else None)
        except ValueError:
            raise RequestError(400, f'{self.name!r}: the rows of "data" differ in shape') from None
        if array.size != count:
            raise RequestError(400, f"{wrong_size}{array.size}")
        return array.reshape(self.shape)

    def from_bytes(self, data: bytes) -> Array:
        """Values in row order, each in little-endian bytes."""
        count = math.prod(self.shape)
        if self.dtype == "string":
            return self._strings(data, count).reshape(self.shape)
        if len(data) != count * self.width:
            raise RequestError(
                400, f"{self.name!r}: shape {self.shape} takes {count * self.width} bytes, got {len(data)}"
            )
        array = np.frombuffer(data, np.dtype(self.dtype).newbyteorder("<"))
        return array.astype(self.dtype, copy=False).reshape(self.shape)

    def _strings(self, data: bytes, count: int) -> Array:
        """Strings, each with its length before it."""
        found: list[bytes] = []
        place = 0
        while place + 4 <= len(data) and len(found) < count:
            (length,) = struct.unpack_from("<I", data, place)
            if place + 4 + length > len(data):
                break
            found.append(data[place + 4 : place + 4 + length])
            place += 4 + length
        if place != len(data) or len(found) != count:
            raise RequestError(400, f"{self.name!r}: expected {count} strings, each preceded by its length")
        array = np.empty(count, object)
        array[:] = found
        return array


def _read_inputs(head: dict[str, object], binary: bytes, settings: ServerSettings) -> dict[str, Array]:
    inputs = head.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise RequestError(400, '"inputs" must be a list with at least one tensor')
    found: dict[str, Array] = {}
    place = 0
    for one in map(_SentTensor.of, inputs):
        if one.name in found:
            raise RequestError(400, f"the input {one.name!r} is given twice")
        size = one.size
        # Any of its values takes at least a byte of the body; once it fits, so does the array.
        limits.check_shape(one.name, one.shape, 1 if size is None else one.width, settings)
        if size is None:
            found[one.name] = one.from_json()
            continue
        if type(size) is not int or size < 0 or place + size > len(binary):
            raise RequestError(400, f"{one.name!r}: binary_data_size {size!r} exceeds the bytes sent")
        found[one.name] = one.from_bytes(binary[place : place + size])
        place += size
    if place != len(binary):
        raise RequestError(400, f"there are {len(binary) - place} bytes after the last tensor")
    return found


def _parameters(one: dict[str, object]) -> dict[str, object]:
    found = one.get("parameters")
    return found if isinstance(found, dict) else {}


def _pack(array: Array) -> bytes:
    if array.dtype != object:
        return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return b"".join(struct.pack("<I", len(one)) + one for one in map(as_bytes, array.ravel()))


def _choose_outputs(head: dict[str, object], fields: tuple[Field, ...]) -> list[tuple[Field, bool]]:
    """The outputs to give, and whether as bytes."""
    every = bool(_parameters(head).get("binary_data_output", False))
    asked = head.get("outputs")
    if not asked:
        return [(field, every) for field in fields]
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise RequestError(400, '"outputs" must be a list of objects with "name"')
    by_name = {field.name: field for field in fields}
    found: dict[str, tuple[Field, bool]] = {}
    for one in asked:
        name = one.get("name")
        if not isinstance(name, str) or name not in by_name:
            raise RequestError(400, f"there is no output {name!r}; there are {', '.join(by_name)}")
        if name in found:
            raise RequestError(400, f"the output {name!r} is asked for twice")
        found[name] = (by_name[name], bool(_parameters(one).get("binary_data", every)))
    return list(found.values())
