"""Check saved Keras models before Keras loads them: nothing in them may run code, or read another file.

Keras has `safe_mode` for this, but how far it keeps that promise has changed often between versions and formats. So the
configuration is checked here, whatever the version.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from stoker.errors import StokerError
from stoker.tf_internals.versions import KERAS, parse, spell

if TYPE_CHECKING:
    import h5py

_MOST_CONFIG_BYTES = 64 << 20
# Keras does not compress weights, so an archive that grows more than this is meant to fill the memory.
_MOST_GROWTH, _LARGE = 20, 1 << 30
_WEIGHTS = "model.weights.h5"
# The other form of weights that Keras reads, `.npz`, can hold pickled objects.
_MEMBERS = {"config.json", "metadata.json", _WEIGHTS}
_RUNS_CODE = {
    "Lambda": "runs Python code that is stored in the file",
    "__lambda__": "is Python code that is stored in the file",
    "TorchModuleWrapper": "is unpickled",
    "TFSMLayer": "loads a SavedModel from elsewhere",
    "JaxLayer": "runs Python code that is stored in the file",
    "FlaxLayer": "runs Python code that is stored in the file",
}
_READS_VOCABULARY = {"StringLookup", "IntegerLookup", "TextVectorization", "IndexLookup"}
# The modules from which Keras makes models; everything else (utilities, settings, files) is not part of one.
_PARTS_OF_MODELS = re.compile(
    r"keras(\.src)?\.(activations|backend|constraints|dtype_policies|initializers|layers|losses|metrics|mixed_precision|"
    r"models|ops|optimizers|quantizers|random|regularizers|trainers|legacy\.losses|legacy\.preprocessing)(\..+)?|keras"
)


class KerasFileError(StokerError, ValueError):
    """A saved Keras model cannot be read, or would run code or read other files while loading."""


class CodeInFileError(KerasFileError):
    """Loading the file would run code or read other files; the program that made the file has the model itself."""


def check_keras_file(file: Path) -> None:
    """Check a `.keras` or `.h5` file without loading it.

    Raises:
        KerasFileError: the file cannot be read, or something in it runs code or reads other files. The message says
            what; the caller puts the file's name before it.
    """
    import h5py

    _check_version()
    try:
        # Keras goes by the file's name. A file can be both, so every format that can read it is checked.
        archive = zipfile.is_zipfile(file)
        if archive:
            _check_archive(file)
        if not archive or h5py.is_hdf5(file):
            with open(file, "rb") as stream:
                _check_h5(stream)
    except OSError as error:
        raise KerasFileError(f"it cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError) as error:
        raise KerasFileError(f"it is damaged: {error}") from None


def _check_version() -> None:
    import keras

    # Older versions run a file's code even in safe mode, or allocate whatever size it claims. Newer ones had holes,
    # too, so the file itself is checked as well.
    if parse(keras.__version__) < KERAS.oldest:
        raise KerasFileError(
            f"Keras {keras.__version__} has known holes in loading model files: "
            f"pip install 'keras>={spell(KERAS.oldest)}'"
        )


def _check_archive(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        size = sum(one.file_size for one in members)
        if size > max(_LARGE, _MOST_GROWTH * file.stat().st_size):
            raise KerasFileError(f"it would grow to {size:,} bytes, more than any Keras archive")
        for one in members:
            path = PurePosixPath(one.filename)
            if path.is_absolute() or ".." in path.parts:
                raise KerasFileError(f"it holds {one.filename!r}, a path outside of the archive")
            if one.filename not in _MEMBERS and path.parts[:1] != ("assets",):
                raise KerasFileError(f"it holds {one.filename!r}, which Keras archives never hold")
        if len({one.filename for one in members}) != len(members):
            raise KerasFileError("two of its members have the same name")
        if "config.json" not in archive.namelist():
            raise KerasFileError("it is not a Keras model: it has no config.json")
        with archive.open("config.json") as stream:
            _check_config(stream.read(_MOST_CONFIG_BYTES + 1))
        if _WEIGHTS in archive.namelist():
            with archive.open(_WEIGHTS) as stream:
                _check_h5(stream, needs_config=False)


def _check_h5(stream: IO[bytes], *, needs_config: bool = True) -> None:
    import h5py

    try:
        opened = h5py.File(stream, "r")
    except (OSError, RuntimeError, KeyError, ValueError):
        raise KerasFileError("it is neither a .keras nor an HDF5 file, or it is damaged") from None
    with opened as content:
        if needs_config:
            found = [
                content.attrs[key] for key in ("model_config", "training_config") if key in content.attrs
            ]
            if "model_config" not in content.attrs:
                raise KerasFileError("it has only weights: save the whole model")
            for text in found:
                _check_config(text if isinstance(text, bytes) else str(text).encode("utf-8"))
        _check_datasets(content)


def _check_datasets(group: h5py.Group) -> None:
    """Check that every number is in the file itself."""
    import h5py

    waiting, seen = [group], set()
    while waiting:
        one = waiting.pop()
        for name in one:
            link = one.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise KerasFileError(f"{one.name}/{name} leads to another place")
            found = one[name]
            if isinstance(found, h5py.Dataset):
                if found.external or found.is_virtual:
                    raise KerasFileError(f"{found.name} takes its numbers from another file")
                # Storage that was never written reads as zeros, however large the size that is claimed.
                if found.nbytes > _LARGE and found.id.get_storage_size() * _MOST_GROWTH < found.nbytes:
                    raise KerasFileError(f"{found.name} claims {found.nbytes:,} bytes but holds few")
            elif isinstance(found, h5py.Group) and found.id not in seen:
                seen.add(found.id)
                waiting.append(found)


def _check_config(text: bytes) -> None:
    if len(text) > _MOST_CONFIG_BYTES:
        raise KerasFileError(f"its configuration is larger than {_MOST_CONFIG_BYTES:,} bytes")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        raise KerasFileError("its configuration is not JSON, or nested too deeply") from None
    for one in _objects(config):
        reason = _reason_against(one)
        if reason:
            raise CodeInFileError(reason)


def _objects(config: object) -> Iterator[dict[str, object]]:
    """Yield every dict in a configuration, however deep."""
    waiting = [config]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _reason_against(config: dict[str, object]) -> str:
    """Say why an object may not be made from its configuration; "" if it may."""
    kind, module = config.get("class_name"), config.get("module")
    inner = config.get("config")
    name = inner.get("name") if isinstance(inner, dict) else None
    shown = f"{kind} {name!r}" if isinstance(name, str) else str(kind)
    if not isinstance(kind, str):
        return ""
    if kind in _RUNS_CODE:
        return f"{shown} {_RUNS_CODE[kind]}"
    if isinstance(inner, dict) and kind in _READS_VOCABULARY and isinstance(inner.get("vocabulary"), str):
        return f"{shown} reads its vocabulary from the file {inner['vocabulary']!r}; save the model with it inside"
    if module is None or module == "builtins":
        return ""  # looked up among the objects that Keras or this program has registered, so nothing is imported
    target = inner if kind == "function" and isinstance(inner, str) else kind
    if not isinstance(module, str) or not _PARTS_OF_MODELS.fullmatch(module):
        return f"it needs {target!r} of the module {module!r}, which only the program that made it has"
    if module == "keras" and not target[:1].isupper() and not target.startswith("__"):
        return f"keras.{target} is not part of a model"
    return ""
