"""A bundle on the disk: a directory with everything a model needs to answer, identified by its hashes.

    bundle/
        bundle.json     signature, labels, versions, lineage, hashes of the other files, a seal over all of that
        saved_model/    the function, weights and vocabularies, for TensorFlow
        model.keras     the same model, for Keras
        examples.npz    a few rows with their answers

The seal is a hash over everything else in `bundle.json`, and its signature if there is one. Older bundles have none.
Reading a bundle needs no TensorFlow.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from stoker import storage
from stoker.errors import StokerError, check_local_path
from stoker.serve.signature import Signature

SCHEMA = 1
DESCRIPTION = "bundle.json"
SAVED_MODEL = "saved_model"
KERAS = "model.keras"
EXAMPLES = "examples.npz"
_KERAS_SUFFIXES = (".keras", ".h5", ".hdf5")
SIGNATURE = "serving_default"
# The outputs that a bundle adds to a model whose classes have names.
LABEL, SCORES = "label", "scores"
SEAL = "seal"
# The directory in which a run keeps its bundle.
IN_RUN = "bundle"
# The same function for other engines.
CONVERTED = {"litert": "model.tflite", "onnx": "model.onnx"}
# The limit on the size of `bundle.json`, which may list vocabularies: ten times the largest we know.
_MOST_BYTES = 256 << 20
# The types of the entries in a description.
_KINDS: dict[str, type | tuple[type, ...]] = {
    "created": str,
    "model": str,
    "weights": dict,
    "versions": dict,
    "examples": dict,
    "evaluation": dict,
    "lineage": dict,
    "statistics": (dict, type(None)),
    "engines": (dict, type(None)),
    "keras": dict,
    SEAL: dict,
}


Description = dict[str, Any]
"""What `bundle.json` holds."""


class FileHash(TypedDict):
    """The length and the hash of a file in a bundle."""

    bytes: int
    sha256: str


class BundleError(StokerError, ValueError):
    """A model cannot be made into a bundle, or a bundle is missing, damaged or of another schema."""


class BundleWarning(UserWarning):
    """A bundle works, but something about it could be better."""


class Proof(TypedDict):
    """The number of examples answered, and why `model.keras` does not load by itself, if it does not."""

    rows: int
    keras: str | None


@dataclass(frozen=True, repr=False)
class Bundle:
    """The contents of `bundle.json`.

    Attributes:
        path: the directory.
        signature: inputs and outputs.
        labels: the names of a classifier's classes.
        description: the whole file.
    """

    path: Path
    signature: Signature
    labels: tuple[str, ...] | None
    description: Description

    def __repr__(self) -> str:
        takes, gives = (
            ", ".join(map(str, fields)) for fields in (self.signature.inputs, self.signature.outputs)
        )
        return f"<Bundle {self.path}: {takes} -> {gives}>"

    @property
    def version(self) -> int:
        """The time of the export in whole seconds, so later exports have higher versions."""
        return int(self.description["version"])

    @property
    def bytes(self) -> int:
        """The size of all files but the description."""
        return sum(int(one["bytes"]) for one in self.description["files"].values())

    @property
    def weight_bytes(self) -> int:
        """The size of the weights."""
        return int(self.description.get("weights", {}).get("bytes", 0))

    @property
    def sealed(self) -> bool:
        """Whether a hash covers the description itself: the labels, the signature and the hashes."""
        return SEAL in self.description

    @property
    def note(self) -> str:
        """One line on what this bundle lacks because an older Stoker wrote it; empty if it lacks nothing."""
        if self.sealed:
            return ""
        return (
            f"{self.path} was exported by an older Stoker: no hash covers its labels and its signature; "
            "export it again to have them covered"
        )


def locate(path: str | os.PathLike[str]) -> Path:
    """Return the directory that a path means: a bundle, one with numbered bundles, or the `bundle/` of a recipe's run.

    Raises:
        BundleError: there is no bundle.
    """
    place = local_place(path)
    if place.is_file():
        raise BundleError(_describe_file(place))
    if not place.is_dir():
        raise BundleError(f"there is no directory {place}")
    for one in (place, place / IN_RUN):
        if any((inner / DESCRIPTION).is_file() for inner in list_places(one)):
            return one
    raise BundleError(
        f"{place} is not a bundle: it has no {DESCRIPTION}, and neither has {place / IN_RUN}, where a run keeps its "
        "bundle; write one with stoker train or stoker export"
    )


def _describe_file(file: Path) -> str:
    """Say what to do with a file that was given in place of a bundle."""
    if file.suffix.lower() in _KERAS_SUFFIXES:
        return f"{file} is a Keras file, not a bundle: export it first with stoker export {file} bundle/"
    return f"{file} is a file, not the directory of a bundle"


def enter_run(place: Path) -> Path:
    """Return the bundle of a recipe's run if this is the directory of one; otherwise the path unchanged."""
    inner = place / IN_RUN
    return inner if not (place / DESCRIPTION).exists() and (inner / DESCRIPTION).exists() else place


def local_place(path: str | os.PathLike[str]) -> Path:
    """Return the path on this machine; for a URL, the path of its copy."""
    if storage.is_url(path):
        return Path(storage.local_path(os.fspath(path)))
    check_local_path(path)
    return Path(path)


def list_places(path: Path) -> list[Path]:
    """List where bundles may be: the path itself, and the directories in it whose names are numbers."""
    try:
        return [path, *(one for one in path.iterdir() if one.name.isdecimal())]
    except OSError:
        return []  # not there, or just now being renamed


def read(path: str | os.PathLike[str]) -> Bundle:
    """Read a bundle's description.

    Raises:
        BundleError: there is no bundle, or this version cannot read it.
    """
    place = local_place(path)
    file = place / DESCRIPTION
    data = _parse(place, file)
    if not isinstance(data, dict) or "schema" not in data:
        raise BundleError(f"{file} does not describe a bundle: it has no schema")
    if data["schema"] != SCHEMA:
        raise BundleError(f"{file} has schema {str(data['schema'])[:40]}; this Stoker reads schema {SCHEMA}")
    for key, kind in _KINDS.items():
        if key in data and not isinstance(data[key], kind):
            raise BundleError(f"{file} is damaged: {key!r} is {_shorten(data[key])}")
    odd = [name for name in data.get("engines") or {} if name not in CONVERTED]
    if odd:
        raise BundleError(
            f"{file} names the engine {_shorten(odd[0])!r}; choose one of {', '.join(CONVERTED)}"
        )
    try:
        signature = Signature.from_json(data["signature"])
        bundle = Bundle(place, signature, _labels(data["labels"]), data)
        complete = min(bundle.version, bundle.bytes, bundle.weight_bytes) >= 0
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BundleError(f"{file} is damaged: {type(error).__name__}: {_shorten(error)}") from None
    if not complete:
        raise BundleError(f"{file} is damaged: its version or a length is negative")
    if bundle.sealed and not hmac.compare_digest(
        str(data[SEAL].get("sha256")).encode(), digest(data).encode()
    ):
        raise BundleError(f"{file} is not what was exported: its hash does not match")
    return bundle


def _parse(place: Path, file: Path) -> object:
    try:
        with open(file, "rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise BundleError(f"{file} is larger than {_MOST_BYTES:,} bytes, too large to describe a bundle")
        return json.loads(text.decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        reason = f"it has no {DESCRIPTION}" if place.exists() else "there is no such directory"
        raise BundleError(f"{place} is not a bundle: {reason}") from None
    except RecursionError:
        raise BundleError(f"{file} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"{file} cannot be read: {error}") from None


def _labels(found: object) -> tuple[str, ...] | None:
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError("labels must be a list of strings")
    return tuple(found)


def _shorten(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def digest(description: Mapping[str, object]) -> str:
    """Return the SHA-256 of a description without its seal; spacing and order do not matter."""
    said = {key: value for key, value in description.items() if key != SEAL}
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def hashes(directory: Path) -> dict[str, FileHash]:
    """Return the length and SHA-256 of every file but the description, by path.

    Raises:
        BundleError: the directory holds anything but plain files and directories.
    """
    return {
        name: {"bytes": size, "sha256": _sha256(directory / name)} for name, size in _plain_files(directory)
    }


def check_files(bundle: Bundle, unread: Collection[str] = ()) -> None:
    """Check that the files are the ones that were exported.

    Args:
        bundle: the bundle, as read.
        unread: files that will not be loaded; only their lengths are compared.

    Raises:
        BundleError: a file is missing, changed or new, or is a link.
    """
    known, found = bundle.description["files"], dict(_plain_files(bundle.path))
    for name in sorted({*known, *found}):
        if name not in found:
            raise BundleError(f"{bundle.path} is damaged: {name} is missing")
        if name not in known:
            raise BundleError(f"{bundle.path} was changed: {name} was not exported with it")
        # Compare lengths first: a file of another length need not be read.
        same = known[name]["bytes"] == found[name]
        if not same or (name not in unread and known[name]["sha256"] != _sha256(bundle.path / name)):
            raise BundleError(f"{bundle.path} is damaged: {name} is not what was exported")


def _plain_files(directory: Path) -> Iterator[tuple[str, int]]:
    """Yield the path and length of every file but the description. Refuse links, pipes and devices."""
    try:
        for folder, folders, files in os.walk(directory, onerror=_raise):
            for one in sorted((*folders, *files)):
                file = Path(folder, one)
                name, state = file.relative_to(directory).as_posix(), os.lstat(file)
                if stat.S_ISLNK(state.st_mode):
                    raise BundleError(f"{directory} holds the link {name}: a bundle holds plain files only")
                if stat.S_ISREG(state.st_mode):
                    if name != DESCRIPTION:
                        yield name, state.st_size
                elif not stat.S_ISDIR(state.st_mode):
                    raise BundleError(f"{directory} holds {name}, which is not a regular file")
    except OSError as error:
        raise BundleError(f"{directory} cannot be read: {error.strerror}") from None


def _raise(error: OSError) -> None:
    raise error


def _sha256(file: Path) -> str:
    found = hashlib.sha256()
    try:
        with open(file, "rb") as stream:
            while block := stream.read(1 << 20):
                found.update(block)
    except OSError as error:
        raise BundleError(f"{file} cannot be read: {error.strerror}") from None
    return found.hexdigest()
