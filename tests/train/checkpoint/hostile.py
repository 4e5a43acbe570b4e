"""Checkpoint files with right checksums and wrong contents: what no disk fault makes, and someone could."""

from __future__ import annotations

import json
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEAD, TAIL = struct.Struct("<8sI"), struct.Struct("<QQI8s")
MAGIC = b"STOKERCK"


def parts_of(whole: bytes) -> tuple[bytes, dict[str, Any]]:
    """The bytes before the index, and the index."""
    offset, length, _, _ = TAIL.unpack(whole[-TAIL.size :])
    return whole[:offset], json.loads(whole[offset : offset + length])


def joined(front: bytes, index: bytes) -> bytes:
    """A file whose checksums are right."""
    return front + index + TAIL.pack(len(front), len(index), zlib.crc32(index), MAGIC)


def with_index(whole: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The file with another index; what `change` returns takes the place of the index if it is bytes."""
    front, index = parts_of(whole)
    changed = change(index)
    return joined(front, changed if isinstance(changed, bytes) else json.dumps(index).encode())


def entry(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda index: index["entries"][0].update(values)


def details(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda index: index["details"].update(values)


INDEXES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nested": lambda index: b"[" * 100_000,
    "nested in details": lambda index: b'{"entries": [], "details": {"x": ' + b"[" * 90_000 + b"]" * 90_000 + b"}}",
    "no JSON": lambda index: b"\x80\x04\x95pickle",
    "a list": lambda index: b"[]",
    "a number": lambda index: b"7",
    "not UTF-8": lambda index: b'{"entries": "\xff"}',
    "no entries": lambda index: index.pop("entries"),
    "no details": lambda index: index.pop("details"),
    "details a list": lambda index: index.update(details=[]),
    "entries a number": lambda index: index.update(entries=7),
    "entry a number": lambda index: index.update(entries=[7]),
    "entry of more": entry(more=1),
    "huge shape": entry(shape=[1 << 62, 1 << 62]),
    "shape of terabytes": entry(shape=[1 << 40]),
    "negative shape": entry(shape=[-1]),
    "shape a text": entry(shape="abc"),
    "shape of floats": entry(shape=[2.5]),
    "shape of booleans": entry(shape=[True]),
    "huge size": entry(size=1 << 62),
    "huge size and shape": entry(size=1 << 43, shape=[1 << 40], dtype="float64"),
    "negative size": entry(size=-1),
    "negative offset": entry(offset=-40),
    "offset behind the end": entry(offset=1 << 50),
    "offset in the head": entry(offset=0),
    "offset a text": entry(offset="0"),
    "objects": entry(dtype="object"),
    "texts": entry(dtype="U5"),
    "dates": entry(dtype="datetime64[s]"),
    "records": entry(dtype="f4,f4"),
    "type unknown": entry(dtype="float31"),
    "type a number": entry(dtype=7),
    "name a number": entry(name=7),
    "crc a text": entry(crc="x"),
    "the same bytes a thousand times": lambda index: index["entries"].extend(
        {**index["entries"][0], "name": f"copy{number}"} for number in range(1000)
    ),
    "two of a name": lambda index: index["entries"].append(index["entries"][0]),
}  # fmt: skip
DETAILS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no step": lambda index: index["details"].pop("step"),
    "step a text": details(step="seven"),
    "no fingerprint": lambda index: index["details"].pop("fingerprint"),
    "progress a number": details(progress=7),
    "progress of a missing array": details(progress={"a": {"__stoker__": "array", "name": "none"}}),
    "progress of an odd tag": details(progress={"a": {"__stoker__": "tuple"}}),
    "parts a number": details(parts=7),
    "parts without a file": details(parts=[{}]),
    "parts elsewhere": details(parts=[{"file": "/etc/passwd", "size": 1, "crc": 1}]),
    "parts above": details(parts=[{"file": "../../x", "size": 1, "crc": 1}]),
    "replicas a list": details(replicas=[1]),
}


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def put_link(target: str) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return put


def put_bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(50 << 20))


PLACES: dict[str, Callable[[Path], None]] = {
    "a pipe": put_pipe,
    "a link to nothing": put_link("nothing"),
    "a link to itself": put_link("a"),
    "a device": put_link("/dev/zero"),
    "a zip bomb": put_bomb,
}


def mutated(whole: bytes, chance: random.Random) -> bytes:
    """One random change: bits, a cut, something put in, numbers in the index; often with right checksums."""
    kind = chance.randrange(5)
    if kind == 0:
        changed = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        return bytes(changed)
    if kind == 1:
        return whole[: chance.randrange(len(whole))]
    if kind == 2:
        place = chance.randrange(len(whole))
        return whole[:place] + chance.randbytes(chance.randint(1, 64)) + whole[place:]
    if kind == 3:
        front, index = parts_of(whole)
        text = bytearray(json.dumps(index).encode())
        for _ in range(chance.randint(1, 4)):
            text[chance.randrange(len(text))] = chance.choice(b'0123456789-[]{}",:.eEnull\x00\xff')
        return joined(front, bytes(text))
    return with_index(whole, lambda index: _another_value(index, chance))


def _another_value(index: dict[str, Any], chance: random.Random) -> None:
    """Somewhere in the index, something else."""
    odd: list[Any] = [
        None,
        -1,
        0,
        1 << 31,
        1 << 63,
        10**400,
        1.5,
        True,
        "",
        "x" * 1000,
        [],
        {},
        [[]],
        {"__stoker__": "bytes"},
    ]
    where: Any = index
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        if not keys:
            return
        key = chance.choice(keys)
        if not isinstance(where[key], dict | list) or not where[key] or chance.random() < 0.2:
            where[key] = chance.choice(odd)
            return
        where = where[key]
