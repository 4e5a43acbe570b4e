"""Choices made by measuring, and remembered in `.stoker/plans/<key>.json`.

XLA rounds in its own way, so the choice to use it decides bits. The clock may make that choice once; every later run of
the same program, model, data shape and machine reads the choice.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import TypedDict

import keras
import tensorflow as tf

from stoker.files import PLANS

DIRECTORY = PLANS

# The format of the names. It is the version that introduced it, and changes only if old choices must be forgotten.
_FORM = "0.1.0"


class JitChoice(TypedDict):
    """A choice, its reason, and the figures behind it."""

    jit: str
    reason: str
    figures: dict[str, float]


def key_of(concrete: tf.types.experimental.ConcreteFunction, *facts: object) -> str:
    """Return the name of a choice: a hash of the traced step op by op, the machine, the versions and other facts."""
    ops = [
        (op.type, [(str(out.shape), out.dtype.name) for out in op.outputs])
        for op in concrete.graph.get_operations()
    ]
    parts = (
        os.path.abspath(sys.argv[0]),
        ops,
        machine(),
        (_FORM, tf.__version__, keras.__version__, platform.python_version()),
        facts,
    )
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def machine() -> tuple[str, ...]:
    """Return the devices for which a choice is valid."""
    devices = [f"{device.device_type}:{device.name}" for device in tf.config.list_logical_devices()]
    return (*devices, _processor(), str(os.cpu_count()))


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def can_remember() -> bool:
    """Return whether later runs would find a choice made now."""
    try:
        DIRECTORY.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(DIRECTORY, os.W_OK)


def recall(key: str) -> JitChoice | None:
    """Return the choice of this name; None if none can be read."""
    try:
        choice = json.loads((DIRECTORY / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_choice = isinstance(choice, dict) and choice.get("jit") in ("loop", "step", "none")
    return choice if is_choice else None


def remember(key: str, choice: JitChoice) -> JitChoice:
    """Store a choice; return the valid one, since another process may have been first. None if it cannot be stored."""
    try:
        return _store(key, choice)
    except OSError as error:
        reason = f"{DIRECTORY} cannot be written ({error.strerror}): no choice by timing"
        return {"jit": "none", "reason": reason, "figures": {}}


def _store(key: str, choice: JitChoice) -> JitChoice:
    path = DIRECTORY / f"{key}.json"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(choice), encoding="utf-8")
        try:
            os.link(temporary, path)
        except OSError:
            # Another process has stored one, or the file system has no links: then the last of two writers wins.
            earlier = recall(key)
            if earlier is not None:
                return earlier
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return choice
