"""The recorded examples of a bundle: a few rows and their answers, in one `.npz` file without pickle.

NumPy has no type for strings of any length that it can store plainly, so an array of strings is stored as its bytes,
where each string ends, and its shape.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]


def write(path: Path, inputs: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
    """Store the examples."""
    stored: Arrays = {}
    for part, arrays in (("input", inputs), ("answer", answers)):
        for name, array in arrays.items():
            for what, plain in _plain(np.asarray(array)).items():
                stored[f"{part}/{name}/{what}"] = plain
    np.savez_compressed(path, **stored)


def read(path: Path) -> tuple[Arrays, Arrays]:
    """Inputs and answers by name.

    Raises:
        OSError, ValueError: the file is not there or damaged.
    """
    found: dict[str, dict[str, Arrays]] = {"input": {}, "answer": {}}
    try:
        with np.load(path, allow_pickle=False) as file:
            for key in file.files:
                part, _, rest = key.partition("/")
                name, _, what = rest.rpartition("/")
                found[part].setdefault(name, {})[what] = file[key]
    except (zipfile.BadZipFile, EOFError, KeyError) as error:
        raise ValueError(str(error)) from None
    return _joined(found["input"]), _joined(found["answer"])


def is_text(array: Any) -> bool:
    """An array of strings, in any of the ways NumPy has for them."""
    return array.dtype.kind in "OSU"


def as_bytes(value: Any) -> bytes:
    """One string as TensorFlow has it."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8")


def _plain(array: Any) -> Arrays:
    if not is_text(array):
        return {"values": array}
    strings = [as_bytes(one) for one in array.ravel()]
    return {
        "bytes": np.frombuffer(b"".join(strings), np.uint8),
        "ends": np.cumsum([len(one) for one in strings], dtype=np.int64),
        "shape": np.array(array.shape, np.int64),
    }


def _joined(parts: dict[str, Arrays]) -> Arrays:
    return {name: one["values"] if "values" in one else _strings(one) for name, one in parts.items()}


def _strings(stored: Arrays) -> Any:
    text, ends = stored["bytes"].tobytes(), stored["ends"].tolist()
    array: Any = np.empty(len(ends), object)
    array[:] = [text[first:last] for first, last in zip([0, *ends[:-1]], ends, strict=True)]
    return array.reshape(stored["shape"])
