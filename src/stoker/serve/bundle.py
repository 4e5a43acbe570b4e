"""A bundle on the disk: a directory with everything a model needs to answer, known by its hashes.

    bundle/
        bundle.json     signature, labels, versions, lineage, hashes of the other files
        saved_model/    the function, weights and vocabularies, for TensorFlow
        model.keras     the same model, for Keras
        examples.npz    a few rows with their answers

Reading one needs no TensorFlow.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.errors import StokerError
from stoker.serve.signature import Signature

SCHEMA = 1
DESCRIPTION = "bundle.json"
SAVED_MODEL = "saved_model"
KERAS = "model.keras"
EXAMPLES = "examples.npz"
SIGNATURE = "serving_default"


class BundleError(StokerError, ValueError):
    """A bundle cannot be made of this model, or is missing, damaged or of another schema."""


@dataclass(frozen=True, repr=False)
class Bundle:
    """What `bundle.json` says.

    Attributes:
        path: of the directory.
        signature: inputs and outputs.
        labels: of a classifier: what its classes are called.
        description: all of the file.
    """

    path: Path
    signature: Signature
    labels: tuple[str, ...] | None
    description: dict[str, Any]

    def __repr__(self) -> str:
        takes, gives = (
            ", ".join(map(str, fields)) for fields in (self.signature.inputs, self.signature.outputs)
        )
        return f"<Bundle {self.path}: {takes} -> {gives}>"

    @property
    def version(self) -> int:
        """Grows from one export to the next: the second it was made in."""
        return int(self.description["version"])

    @property
    def bytes(self) -> int:
        """Of all files but the description."""
        return sum(int(one["bytes"]) for one in self.description["files"].values())


def read(path: str | os.PathLike[str]) -> Bundle:
    """Read a bundle's description.

    Raises:
        BundleError: there is none, or it is none this version reads.
    """
    place = Path(path)
    file = place / DESCRIPTION
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        reason = f"it has no {DESCRIPTION}" if place.exists() else "there is no such directory"
        raise BundleError(f"{place} is no bundle: {reason}") from None
    except (OSError, ValueError) as error:
        raise BundleError(f"{file} cannot be read: {error}") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise BundleError(f"{file} is no description of a bundle: it has no schema")
    if data["schema"] != SCHEMA:
        raise BundleError(f"{file} has schema {data['schema']!r}; this Stoker reads schema {SCHEMA}")
    try:
        signature = Signature.from_json(data["signature"])
        labels = None if data["labels"] is None else tuple(data["labels"])
        bundle = Bundle(place, signature, labels, data)
        complete = bundle.version >= 0 and bundle.bytes >= 0
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{file} is damaged: {type(error).__name__}: {error}") from None
    if not complete:
        raise BundleError(f"{file} is damaged: its version or a length is negative")
    return bundle


def hashes(directory: Path) -> dict[str, dict[str, Any]]:
    """Length and SHA-256 of every file but the description, by path."""
    found = {}
    for file in sorted(directory.rglob("*")):
        name = file.relative_to(directory).as_posix()
        if file.is_file() and name != DESCRIPTION:
            found[name] = {"bytes": file.stat().st_size, "sha256": _sha256(file)}
    return found


def check_files(bundle: Bundle) -> None:
    """The files are the ones that were exported.

    Raises:
        BundleError: one is missing, changed or new.
    """
    known, found = bundle.description["files"], hashes(bundle.path)
    for name in sorted({*known, *found}):
        if name not in found:
            raise BundleError(f"{bundle.path} is damaged: {name} is missing")
        if name not in known:
            raise BundleError(f"{bundle.path} is changed: {name} was not exported with it")
        if known[name] != found[name]:
            raise BundleError(f"{bundle.path} is damaged: {name} is not what was exported")


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
