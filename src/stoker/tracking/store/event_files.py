"""TensorBoard's event files, read and written as far as scalars go: records with checksums around small messages.

Neither TensorFlow nor TensorBoard is needed for that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DT_FLOAT, _DT_DOUBLE, _DT_INT32, _DT_INT64 = 1, 2, 3, 9
# How single numbers are packed in `tensor_content`.
_PACKED = {_DT_FLOAT: "<f", _DT_DOUBLE: "<d", _DT_INT32: "<i", _DT_INT64: "<q"}
_POLYNOMIAL = 0x82F63B78


class Scalar(NamedTuple):
    """One value of a series."""

    tag: str
    step: int
    time: float
    value: float


def read(path: Path) -> Iterator[Scalar]:
    """The scalars of a file, in order; it may end in the middle of one, as long as it is written."""
    data = path.read_bytes()
    place = 0
    while place + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        if place + length + 16 > len(data):
            return
        yield from _scalars(data[place + 12 : place + 12 + length])
        place += length + 16


def _scalars(event: bytes) -> Iterator[Scalar]:
    at, step = 0.0, 0
    summaries: list[bytes] = []
    for number, kind, value in _fields(event):
        if number == 1 and kind == _FIXED64:
            (at,) = struct.unpack("<d", value)
        elif number == 2 and kind == _VARINT:
            step = _signed(value)
        elif number == 5 and kind == _BYTES:
            summaries.append(value)
    for summary in summaries:
        for number, kind, value in _fields(summary):
            if number == 1 and kind == _BYTES:
                tag, found = _value(value)
                if found is not None:
                    yield Scalar(tag, step, at, found)


def _value(message: bytes) -> tuple[str, float | None]:
    tag, found = "", None
    for number, kind, value in _fields(message):
        if number == 1 and kind == _BYTES:
            tag = value.decode("utf-8", "replace")
        elif number == 2 and kind == _FIXED32:
            (found,) = struct.unpack("<f", value)
        elif number == 8 and kind == _BYTES:
            found = _tensor(value)
    return tag, found


def _tensor(message: bytes) -> float | None:
    """The number a tensor is, if it is one."""
    dtype, found = 0, None
    for number, kind, value in _fields(message):
        if number == 1 and kind == _VARINT:
            dtype = _signed(value)
        elif number == 2 and kind == _BYTES and _fields_of(value):
            # A shape with dimensions: not a single number.
            return None
        elif number == 4 and kind == _BYTES and dtype in _PACKED:
            packed = _PACKED[dtype]
            if len(value) == struct.calcsize(packed):
                found = float(struct.unpack(packed, value)[0])
        elif number == 5 and kind in (_BYTES, _FIXED32) and len(value) == 4:
            found = float(struct.unpack("<f", value)[0])
        elif number == 6 and kind in (_BYTES, _FIXED64) and len(value) == 8:
            found = float(struct.unpack("<d", value)[0])
    return found


def _fields_of(message: bytes) -> bool:
    return any(number == 2 for number, _, _ in _fields(message))


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The fields of a protocol buffer: number, kind, and the bytes of its value."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            start = place
            _, place = _varint(message, place)
            yield number, kind, message[start:place]
            continue
        if kind == _BYTES:
            length, place = _varint(message, place)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            return
        yield number, kind, message[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while place < len(data):
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return number, place


def _signed(data: bytes) -> int:
    number, _ = _varint(data, 0)
    return number - (1 << 64) if number >= 1 << 63 else number


def write(path: Path, scalars: Iterator[Scalar], started: float) -> None:
    """Write a file that TensorBoard reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(_record(struct.pack("<Bd", 0x09, started) + _bytes(3, b"brain.Event:2")))
        for scalar in scalars:
            value = _bytes(1, scalar.tag.encode()) + struct.pack("<Bf", 0x15, _single(scalar.value))
            event = struct.pack("<Bd", 0x09, scalar.time) + b"\x10" + _encoded(scalar.step)
            file.write(_record(event + _bytes(5, _bytes(1, value))))


def _single(value: float) -> float:
    """A value that a float of 32 bits can hold: larger ones are infinite there."""
    try:
        struct.pack("<f", value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return value


def _bytes(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | _BYTES]) + _encoded(len(value)) + value


def _encoded(number: int) -> bytes:
    number &= (1 << 64) - 1
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _checksum(length)) + data + struct.pack("<I", _checksum(data))


def _table() -> tuple[int, ...]:
    made = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        made.append(byte)
    return tuple(made)


_CRC = _table()


def _checksum(data: bytes) -> int:
    """CRC-32C, masked as the format wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
