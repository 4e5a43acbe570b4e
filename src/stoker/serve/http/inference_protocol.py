"""The Open Inference Protocol, version 2 (KServe, Triton): JSON, and tensors as plain bytes behind it.

GET  /v2, /v2/health/live, /v2/health/ready, /v2/models/NAME[/versions/V][/ready]
POST /v2/models/NAME[/versions/V]/infer
"""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import Any

import numpy as np
import orjson

from stoker.serve.http import limits
from stoker.serve.http.messages import OPTIONS, HttpError, Request, Response, answer, parsed
from stoker.serve.http.models import Models, Version
from stoker.serve.http.question import Question, Unparsed
from stoker.serve.http.settings import Settings
from stoker.serve.rows import as_asked
from stoker.serve.signature import Field
from stoker.version import __version__

TYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
    "BYTES": "string",
}  # fmt: skip
NAMES = {dtype: name for name, dtype in TYPES.items()}
_LENGTH = b"inference-header-content-length"
_DIGITS = 12


def handle(request: Request, models: Models) -> Response | Unparsed:
    """Anything below /v2: its answer, or whom it asks.

    Raises:
        HttpError: it cannot be.
    """
    parts = request.path.strip("/").split("/")[1:]
    if not parts:
        return answer({"name": "stoker", "version": __version__, "extensions": ["binary_tensor_data"]})
    if parts in (["health", "live"], ["health", "ready"]):
        return answer({parts[1]: True})
    if parts[0] != "models" or len(parts) < 2:
        raise HttpError(404, f"there is nothing at {request.path}")
    request.model = parts[1]
    number = parts[3] if len(parts) > 3 and parts[2] == "versions" else None
    rest = parts[4:] if number else parts[2:]
    version = models.version(request.model, number)
    if rest == ["infer"]:
        if request.method != "POST":
            raise HttpError(405, "infer needs a POST request")
        version.line.check()
        return Unparsed(version, partial(infer, request, version, models.settings))
    if rest == ["ready"]:
        return answer({"name": request.model, "ready": True})
    if rest:
        raise HttpError(404, f"there is nothing at {request.path}")
    return answer(metadata(request.model, models))


def metadata(name: str, models: Models) -> dict[str, Any]:
    """The signature, as the protocol tells it."""
    versions = models.versions(name)
    signature = versions[0].predictor.bundle.signature
    return {
        "name": name,
        "versions": [str(one.number) for one in versions],
        "platform": "tensorflow_savedmodel",
        "inputs": [_described(field) for field in signature.inputs],
        "outputs": [_described(field) for field in signature.outputs],
    }


def _described(field: Field) -> dict[str, Any]:
    shape = [-1, *(-1 if size is None else size for size in field.shape)]
    return {"name": field.name, "datatype": NAMES[field.dtype], "shape": shape}


def infer(request: Request, version: Version, settings: Settings) -> Question:
    """Tensors in, tensors out."""
    fields = version.predictor.bundle.signature.inputs
    head, binary = _parts(request, fields, settings)
    given = _inputs(head, binary, settings)
    rows = as_asked(fields, given)
    if rows.alone:
        raise HttpError(400, "an input's first size must be the number of rows")
    wanted = _wanted(head, version.predictor.bundle.signature.outputs)
    said: dict[str, Any] = {"model_name": request.model, "model_version": str(version.number)}
    if isinstance(head.get("id"), str):
        said["id"] = head["id"]
    return Question(version, rows, partial(_inferred, said, wanted))


def _inferred(said: dict[str, Any], wanted: list[tuple[Field, bool]], found: dict[str, Any]) -> Response:
    said["outputs"], tail = [], []
    for field, as_bytes in wanted:
        array = found[field.name]
        output: dict[str, Any] = {
            "name": field.name,
            "datatype": NAMES[field.dtype],
            "shape": list(array.shape),
        }
        if as_bytes:
            data = _packed(array)
            output["parameters"] = {"binary_data_size": len(data)}
            tail.append(data)
        else:
            output["data"] = _flat(array)
        said["outputs"].append(output)
    body = orjson.dumps(said, option=OPTIONS)
    if not tail:
        return Response(200, body)
    headers = [(_LENGTH, str(len(body)).encode())]
    return Response(200, body + b"".join(tail), b"application/octet-stream", headers)


def _parts(request: Request, fields: tuple[Field, ...], settings: Settings) -> tuple[dict[str, Any], bytes]:
    length = request.headers.get(_LENGTH)
    body = request.body
    if length is not None:
        if not length.isdigit() or len(length) > _DIGITS or int(length) > len(body):
            given = length[: _DIGITS + 1].decode("latin-1")
            raise HttpError(400, f"Inference-Header-Content-Length must be at most {len(body)}, got {given}")
        body = body[: int(length)]
    limits.check_json(body, fields, settings)
    head = parsed(body)
    if not isinstance(head, dict):
        raise HttpError(400, "the body must be a JSON object")
    return head, request.body[len(body) :]


def _inputs(head: dict[str, Any], binary: bytes, settings: Settings) -> dict[str, Any]:
    inputs = head.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise HttpError(400, '"inputs" must be a list with at least one tensor')
    given: dict[str, Any] = {}
    place = 0
    for one in inputs:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise HttpError(400, 'an input must be an object with "name", "datatype", "shape" and "data"')
        if one["name"] in given:
            raise HttpError(400, f"the input {one['name']!r} is given twice")
        size = _parameters(one).get("binary_data_size")
        shape, dtype = _shape(one), _type(one)
        # Any of its values takes at least a byte of the body; once it fits, so does the array.
        limits.check_shape(one["name"], shape, 1 if size is None else _width(dtype), settings)
        if size is None:
            given[one["name"]] = _of_json(one, shape, dtype)
            continue
        if type(size) is not int or size < 0 or place + size > len(binary):
            raise HttpError(400, f"{one['name']!r}: binary_data_size {size!r} exceeds the bytes sent")
        given[one["name"]] = _unpacked(one["name"], binary[place : place + size], shape, dtype)
        place += size
    if place != len(binary):
        raise HttpError(400, f"there are {len(binary) - place} bytes after the last tensor")
    return given


def _parameters(one: dict[str, Any]) -> dict[str, Any]:
    found = one.get("parameters")
    return found if isinstance(found, dict) else {}


def _shape(one: dict[str, Any]) -> list[int]:
    shape = one.get("shape")
    if not isinstance(shape, list) or not all(type(size) is int for size in shape):
        raise HttpError(400, f'{one["name"]!r}: "shape" must be a list of sizes')
    return shape


def _width(dtype: str) -> int:
    """Bytes of one value; a string has at least its length."""
    return 4 if dtype == "string" else np.dtype(dtype).itemsize


def _type(one: dict[str, Any]) -> str:
    datatype = one.get("datatype")
    if not isinstance(datatype, str) or datatype not in TYPES:
        raise HttpError(400, f'{one["name"]!r}: "datatype" must be one of {", ".join(TYPES)}')
    return TYPES[datatype]


def _of_json(one: dict[str, Any], shape: list[int], dtype: str) -> Any:
    """Values flat or nested, in row order."""
    data = one.get("data")
    if not isinstance(data, list):
        raise HttpError(400, f'{one["name"]!r}: "data" must be a list')
    if len(data) > math.prod(shape):
        raise HttpError(
            400, f"{one['name']!r}: shape {shape} takes {math.prod(shape)} values, got {len(data)}"
        )
    try:
        array: Any = np.array(data, dtype=object) if dtype == "string" else np.asarray(data)
    except ValueError:
        raise HttpError(400, f'{one["name"]!r}: the rows of "data" differ in shape') from None
    if array.size != math.prod(shape):
        raise HttpError(
            400, f"{one['name']!r}: shape {shape} takes {math.prod(shape)} values, got {array.size}"
        )
    return array.reshape(shape)


def _unpacked(name: str, data: bytes, shape: list[int], dtype: str) -> Any:
    count = math.prod(shape)
    if dtype == "string":
        return _strings(name, data, count).reshape(shape)
    wide = _width(dtype)
    if len(data) != count * wide:
        raise HttpError(400, f"{name!r}: shape {shape} takes {count * wide} bytes, got {len(data)}")
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def _strings(name: str, data: bytes, count: int) -> Any:
    """Each with its length before it."""
    found: list[bytes] = []
    place = 0
    while place + 4 <= len(data) and len(found) < count:
        (length,) = struct.unpack_from("<I", data, place)
        if place + 4 + length > len(data):
            break
        found.append(data[place + 4 : place + 4 + length])
        place += 4 + length
    if place != len(data) or len(found) != count:
        raise HttpError(400, f"{name!r}: expected {count} strings, each preceded by its length")
    array: Any = np.empty(count, object)
    array[:] = found
    return array


def _packed(array: Any) -> bytes:
    if array.dtype != object:
        return bytes(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    strings = [one if isinstance(one, bytes) else str(one).encode("utf-8") for one in array.ravel()]
    return b"".join(struct.pack("<I", len(one)) + one for one in strings)


def _flat(array: Any) -> Any:
    if array.dtype != object:
        return np.ascontiguousarray(array.ravel())
    return [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in array.ravel()]


def _wanted(head: dict[str, Any], fields: tuple[Field, ...]) -> list[tuple[Field, bool]]:
    """The outputs to give, and whether as bytes."""
    every = bool(_parameters(head).get("binary_data_output", False))
    asked = head.get("outputs")
    if not asked:
        return [(field, every) for field in fields]
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise HttpError(400, '"outputs" must be a list of objects with "name"')
    by_name = {field.name: field for field in fields}
    found: list[tuple[Field, bool]] = []
    for one in asked:
        name = one.get("name")
        if not isinstance(name, str) or name not in by_name:
            raise HttpError(400, f"there is no output {name!r}; there are {', '.join(by_name)}")
        if any(field.name == name for field, _ in found):
            raise HttpError(400, f"the output {name!r} is asked for twice")
        found.append((by_name[name], bool(_parameters(one).get("binary_data", every))))
    return found
