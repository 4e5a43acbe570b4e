"""Tensors of the Open Inference Protocol, version 2, the same over HTTP and gRPC."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stoker.serve.examples import as_bytes
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.models import ServedModels
from stoker.serve.plane.versions import Version
from stoker.serve.signature import Array, Field
from stoker.units import quantity

TYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
    "BYTES": "string",
}  # fmt: skip
NAMES = {dtype: name for name, dtype in TYPES.items()}
_CONFIG_TYPES = {dtype: f"TYPE_{'STRING' if name == 'BYTES' else name}" for name, dtype in TYPES.items()}
PLATFORM, BACKEND = "tensorflow_savedmodel", "tensorflow"
EXTENSIONS = ("binary_tensor_data", "classification", "model_configuration", "statistics", "model_repository")


def shape_of(field: Field) -> list[int]:
    """Return a shape in the protocol's form: a single -1 if even the number of dimensions is free."""
    return [-1] if field.sizes is None else [-1 if size is None else size for size in field.sizes]


@dataclass(frozen=True, slots=True)
class SentTensor:
    """An input as a request describes it. In JSON, its values are in `data`, or in `size` bytes after the JSON."""

    name: str
    dtype: str
    shape: list[int]
    data: object
    size: object

    @staticmethod
    def of_json(sent: object) -> SentTensor:
        """Read an input from a request in JSON."""
        if not isinstance(sent, dict) or not isinstance(sent.get("name"), str):
            raise RequestError(400, 'an input must be an object with "name", "datatype", "shape" and "data"')
        name, shape, datatype = sent["name"], sent.get("shape"), sent.get("datatype")
        if not isinstance(shape, list) or not all(type(size) is int for size in shape):
            raise RequestError(400, f'{name!r}: "shape" must be a list of sizes')
        if not isinstance(datatype, str) or datatype not in TYPES:
            raise RequestError(400, f'{name!r}: "datatype" must be one of {", ".join(TYPES)}')
        size = parameters_of(sent).get("binary_data_size")
        return SentTensor(name, TYPES[datatype], shape, sent.get("data"), size)

    @property
    def width(self) -> int:
        """The bytes of one value; a string takes at least those of its length."""
        return 4 if self.dtype == "string" else np.dtype(self.dtype).itemsize

    def from_json(self) -> Array:
        """Return the values, flat or nested in JSON, in row order."""
        count = math.prod(self.shape)
        if not isinstance(self.data, list):
            raise RequestError(400, f'{self.name!r}: "data" must be a list')
        wrong_size = f"{self.name!r}: shape {self.shape} takes {quantity(count, 'value')}, got "
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
        """Return the values, in row order, from the little-endian bytes of each."""
        count = math.prod(self.shape)
        if self.dtype == "string":
            return self._strings(data, count).reshape(self.shape)
        if len(data) != count * self.width:
            raise RequestError(
                400,
                f"{self.name!r}: shape {self.shape} takes {quantity(count * self.width, 'byte')}, got {len(data)}",
            )
        array = np.frombuffer(data, np.dtype(self.dtype).newbyteorder("<"))
        return array.astype(self.dtype, copy=False).reshape(self.shape)

    def _strings(self, data: bytes, count: int) -> Array:
        """Read strings, each preceded by its length."""
        found: list[bytes] = []
        place = 0
        while place + 4 <= len(data) and len(found) < count:
            (length,) = struct.unpack_from("<I", data, place)
            if place + 4 + length > len(data):
                break
            found.append(data[place + 4 : place + 4 + length])
            place += 4 + length
        if place != len(data) or len(found) != count:
            raise RequestError(
                400, f"{self.name!r}: expected {quantity(count, 'string')}, each preceded by its length"
            )
        array = np.empty(count, object)
        array[:] = found
        return array


def parameters_of(one: dict[str, object]) -> dict[str, object]:
    """Return the parameters of a part of a request in JSON; raise RequestError if they are not an object."""
    found = one.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise RequestError(400, '"parameters" must be an object')
    return found


def pack_values(array: Array) -> bytes:
    """Pack values in row order, in little-endian bytes; each string is preceded by its length."""
    if array.dtype != object:
        return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return b"".join(struct.pack("<I", len(one)) + one for one in map(as_bytes, array.ravel()))


@dataclass(frozen=True, slots=True)
class WantedOutput:
    """An output that a request asks for: as bytes after the JSON or not, and how many of the best classes, if any."""

    field: Field
    is_binary: bool = False
    classes: int = 0

    def shape_answer(self, version: Version, array: Array) -> tuple[str, Array]:
        """Return the protocol's type and the values of the answer."""
        if not self.classes:
            return NAMES[self.field.dtype], array
        return "BYTES", rank_values(array, self.classes, version)


def choose_outputs(
    fields: Sequence[Field], asked: Mapping[str, tuple[bool, object]], every: bool
) -> list[WantedOutput]:
    """Choose the outputs to give: all, if the request names none.

    Raises:
        RequestError: there is no such output, the protocol lacks its type, or the number of classes is invalid.
    """
    by_name = {field.name: field for field in fields}
    chosen = []
    for name, (is_binary, classes) in (asked or dict.fromkeys(by_name, (every, 0))).items():
        if name not in by_name:
            raise RequestError(400, f"there is no output {name!r}; the outputs are {', '.join(by_name)}")
        if by_name[name].dtype not in NAMES:
            raise RequestError(400, f"{name!r} is {by_name[name].dtype}, which the protocol does not have")
        if type(classes) is not int or classes < 0:
            raise RequestError(400, f"{name!r}: classification must be a number of classes, got {classes!r}")
        chosen.append(WantedOutput(by_name[name], is_binary, classes))
    return chosen


def rank_values(array: Array, count: int, version: Version) -> Array:
    """Return the largest values of each row, as strings "value:place" or "value:place:label"."""
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        raise RequestError(
            400, "classification needs an output of numbers, with a row of them for each input row"
        )
    rows = array.reshape(len(array), -1) if array.ndim > 1 else array[:, None]
    labels = None if version.bundle is None else version.bundle.labels
    named = labels is not None and len(labels) == rows.shape[1]
    found = np.empty((len(rows), min(count, rows.shape[1])), object)
    for place, row in enumerate(rows):
        for rank, index in enumerate(np.argsort(-row, kind="stable")[: found.shape[1]]):
            text = f"{row[index]:f}:{index}" + (f":{labels[index]}" if named and labels is not None else "")
            found[place, rank] = text.encode("utf-8")
    return found


def describe_config(name: str, version: Version, batch: int) -> dict[str, object]:
    """Describe the model's configuration in Triton's form; shapes omit the rows if requests' rows may be joined."""
    signature = version.signature()
    joins = all(field.sizes and field.sizes[0] is None for field in (*signature.inputs, *signature.outputs))

    def describe(fields: Sequence[Field]) -> list[dict[str, object]]:
        return [
            {
                "name": field.name,
                "data_type": _CONFIG_TYPES.get(field.dtype, "TYPE_INVALID"),
                "dims": shape_of(field)[int(joins) :] or [1],
            }
            for field in fields
        ]

    return {
        "name": name,
        "platform": PLATFORM,
        "backend": BACKEND,
        "max_batch_size": batch if joins else 0,
        "input": describe(signature.inputs),
        "output": describe(signature.outputs),
    }


def count_statistics(models: ServedModels, name: str) -> list[dict[str, object]]:
    """Say what a model's newest version has answered since the server started, in Triton's form."""
    total = models.metrics.total
    good = total("stoker_requests_total", name, 'status="200"')
    every, seconds = models.metrics.requests(name)
    calls, rows = models.metrics.calls(name)
    engine = total("stoker_engine_seconds_total", name)
    return [
        {
            "name": name,
            "version": str(models.version(name).number),
            "inference_count": int(rows),
            "execution_count": int(calls),
            "inference_stats": {
                "success": {"count": int(good), "ns": int(1e9 * seconds)},
                "fail": {"count": int(every - good), "ns": 0},
                "compute_infer": {"count": int(calls), "ns": int(1e9 * engine)},
            },
        }
    ]


def list_repository(models: ServedModels) -> list[dict[str, str]]:
    """List all versions of all models."""
    return [
        {"name": name, "version": str(one.number), "state": "READY", "reason": ""}
        for name in models.names()
        for one in models.versions(name)
    ]
