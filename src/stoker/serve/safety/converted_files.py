"""Check LiteRT and ONNX files before their engine loads them: they may use no operations and no files but their own.

The formats are parsed here, as far as needed, so that an image with nothing but the runtime can check, too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

from stoker.serve.bundle import BundleError

# Positions in LiteRT's tables: of the model's operator codes, and of the name of a custom operator.
_CUSTOM_CODE_SLOT, _OPERATOR_CODES_SLOT = 1, 1
# Fields of ONNX's messages that hold another message: by field number, the kind of that message.
_ONNX_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_NODE_TYPE, _NODE_DOMAIN, _TENSOR_NAME, _TENSOR_ELSEWHERE = 4, 7, 8, (13, 14)
_ONNX_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
_DEEPEST = 32
_Found = TypeVar("_Found")


def check_litert(file: Path, allowed: Collection[str]) -> None:
    """Refuse a LiteRT file with operations that are not LiteRT's own (Flex runs any of TensorFlow's).

    Raises:
        BundleError: the file has an operation that is not allowed, or cannot be read.
    """
    for name in _read(file, lambda content: list(_custom_operations(content))):
        if name not in allowed and name.removeprefix("Flex") not in allowed:
            raise BundleError(
                f"{file} has the operation {name}, which is not one of LiteRT's own; "
                f"if you trust the bundle, allow it with --allow-ops {name} (allow_ops=[{name!r}])"
            )


def check_onnx(file: Path, allowed: Collection[str]) -> None:
    """Refuse an ONNX file whose weights are in other files, or with operations that are not ONNX's own.

    Raises:
        BundleError: the file has an operation that is not allowed, weights elsewhere, or cannot be read.
    """
    for kind, name in _read(file, lambda content: list(_onnx_findings(memoryview(content), "model"))):
        if kind == "tensor":
            raise BundleError(
                f"{file} takes the tensor {name!r} from another file; export it again with its weights inside"
            )
        if name not in allowed:
            raise BundleError(
                f"{file} has the operation {name} of the domain {kind!r}, which is not one of ONNX's own; "
                f"if you trust the bundle, allow it with --allow-ops {name} (allow_ops=[{name!r}])"
            )


CHECKS: dict[str, Callable[[Path, Collection[str]], None]] = {"litert": check_litert, "onnx": check_onnx}


def _read(file: Path, walk: Callable[[bytes], list[_Found]]) -> list[_Found]:
    try:
        return walk(file.read_bytes())
    except OSError as error:
        raise BundleError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, IndexError, struct.error) as error:
        raise BundleError(f"{file} is damaged: {error}") from None


def _custom_operations(content: bytes) -> Iterator[str]:
    """Yield the names of a FlatBuffer's custom operators: model -> operator_codes -> custom_code."""
    codes = _slot(content, _offset(content, 0), _OPERATOR_CODES_SLOT)
    if codes is None:
        return
    vector = codes + _offset(content, codes)
    for number in range(_vector_length(content, vector, 4)):
        entry = vector + 4 + 4 * number
        name = _slot(content, entry + _offset(content, entry), _CUSTOM_CODE_SLOT)
        if name is not None:
            text = name + _offset(content, name)
            length = _vector_length(content, text, 1)
            yield content[text + 4 : text + 4 + length].decode("utf-8", "replace")


def _offset(content: bytes, place: int) -> int:
    """Read the unsigned 32-bit offset at a place, which points forward."""
    found: int = struct.unpack_from("<I", content, place)[0]
    if place + found >= len(content):
        raise ValueError("an offset points past the end")
    return found


def _vector_length(content: bytes, place: int, each: int) -> int:
    """Read the length of a vector, and check that the vector lies within the file."""
    length: int = struct.unpack_from("<I", content, place)[0]
    if place + 4 + length * each > len(content):
        raise ValueError("a length points past the end")
    return length


def _slot(content: bytes, table: int, number: int) -> int | None:
    """Return the place of a table's field; None if it is left out."""
    entries = table - struct.unpack_from("<i", content, table)[0]
    if entries < 0:
        raise ValueError("an offset points before the start")
    size: int = struct.unpack_from("<H", content, entries)[0]
    place = 4 + 2 * number
    if place + 2 > size:
        return None
    found: int = struct.unpack_from("<H", content, entries + place)[0]
    return table + found if found else None


def _onnx_findings(message: memoryview, kind: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield tensors that are stored elsewhere ("tensor", name) and operations of other domains (domain, name)."""
    if depth > _DEEPEST:
        raise ValueError("its graphs are nested too deeply")
    elsewhere, texts = False, {_NODE_TYPE: "", _NODE_DOMAIN: "", _TENSOR_NAME: ""}
    for number, value in _fields(message):
        inside = _ONNX_INSIDE.get(kind, {}).get(number)
        if inside and isinstance(value, memoryview):
            yield from _onnx_findings(value, inside, depth + 1)
        elif number in texts and isinstance(value, memoryview):
            texts[number] = bytes(value).decode("utf-8", "replace")
        if kind == "tensor" and number in _TENSOR_ELSEWHERE and value != 0:
            elsewhere = True
    if elsewhere:
        yield "tensor", texts[_TENSOR_NAME]
    if kind == "node" and texts[_NODE_DOMAIN] not in _ONNX_DOMAINS:
        yield texts[_NODE_DOMAIN], texts[_NODE_TYPE]


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the fields of a message in protobuf's wire format: numbers, and the bytes of everything else."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        if key > 0xFFFFFFFF:  # other readers drop the upper bits
            raise ValueError("it is not in protobuf's format")
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _varint(message, place)
            yield number, value
            continue
        if wire == 2:
            length, place = _varint(message, place)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError("it is not in protobuf's format")
        if place + length > len(message):
            raise ValueError("a length points past the end")
        if wire == 2:
            yield number, message[place : place + length]
        place += length


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    found = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("it ends early")
        byte = message[place]
        place += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, place
    raise ValueError("it is not in protobuf's format")
