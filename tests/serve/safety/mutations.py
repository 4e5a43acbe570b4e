"""Bundles changed at random: bits, files swapped, missing, added, links, paths; with the old hashes, or new ones."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoker.serve import bundle
from stoker.serve.bundle import BundleError
from tests.serve.forging import reseal

ODD: list[Any] = [
    None, -1, 0, 1 << 63, 10**400, 1.5, True, "", "x", "/etc/passwd", "../../x", [], {}, [[]], {"bytes": -1},
]  # fmt: skip


def files_of(place: Path) -> list[Path]:
    return sorted(one for one in place.rglob("*") if one.is_file() and not one.is_symlink())


def flip_bits(place: Path, chance: random.Random) -> None:
    file = chance.choice(files_of(place))
    content = bytearray(file.read_bytes())
    for _ in range(chance.randint(1, 6)):
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def cut(place: Path, chance: random.Random) -> None:
    file = chance.choice(files_of(place))
    content = file.read_bytes()
    file.write_bytes(content[: chance.randrange(len(content) + 1)])


def swap(place: Path, chance: random.Random) -> None:
    one, other = chance.sample([file for file in files_of(place) if file.name != bundle.DESCRIPTION], 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def remove(place: Path, chance: random.Random) -> None:
    chance.choice(files_of(place)).unlink()


def add(place: Path, chance: random.Random) -> None:
    name = chance.choice(
        ["saved_model/saved_model.pbtxt", "saved_model/assets/x", "model.onnx", "model.tflite", "x"]
    )
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_bytes(chance.randbytes(chance.randint(0, 200)))


def link(place: Path, chance: random.Random) -> None:
    file = chance.choice(files_of(place))
    file.unlink()
    file.symlink_to(chance.choice(["/etc/passwd", "/dev/zero", "nothing", file.name, "../bundle.json"]))


def describe_otherwise(place: Path, chance: random.Random) -> None:
    """Somewhere in the description, something else."""
    file = place / bundle.DESCRIPTION
    description = json.loads(file.read_text(encoding="utf-8"))
    where: Any = description
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        if not keys:
            break
        key = chance.choice(keys)
        if not isinstance(where[key], dict | list) or not where[key] or chance.random() < 0.2:
            where[key] = chance.choice(ODD)
            break
        where = where[key]
    file.write_text(json.dumps(description), encoding="utf-8")


CHANGES: list[Callable[[Path, random.Random], None]] = [
    flip_bits, cut, swap, remove, add, link, describe_otherwise,
]  # fmt: skip


def mutate(place: Path, chance: random.Random, *, forge: bool) -> str:
    """Change a bundle; `forge` brings its hashes up to date where that can be done. Returns what was done."""
    change = chance.choice(CHANGES)
    change(place, chance)
    if forge:
        try:
            reseal(place)
        except (BundleError, OSError, ValueError, TypeError, AttributeError):
            return f"{change.__name__}, not forged"  # a link, or no description any more
    return f"{change.__name__}{', forged' if forge else ''}"


def copy_of(whole: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(whole, place))
