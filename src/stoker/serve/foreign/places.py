"""Find where models that Stoker did not export are stored. This needs no TensorFlow."""

from __future__ import annotations

from pathlib import Path

from stoker.serve.bundle import DESCRIPTION

SAVED_MODEL, SAVED_MODEL_TEXT, LITERT = "saved_model.pb", "saved_model.pbtxt", "model.tflite"
# If one of these files changes, it is another model; a SavedModel that is still being copied changes, too.
_PARTS = (SAVED_MODEL, SAVED_MODEL_TEXT, LITERT, "variables/variables.index")


def is_foreign_model(path: Path) -> bool:
    """Return whether this path holds a model that Stoker did not export; a bundle may hold such files, too."""
    if (path / DESCRIPTION).is_file():
        return False
    return any((path / name).is_file() for name in (SAVED_MODEL, SAVED_MODEL_TEXT, LITERT))


def is_in_litert(path: Path, preferred: bool) -> bool:
    """Return whether to load the model's LiteRT file: because there is no other, or because it is preferred."""
    has_saved_model = any((path / name).is_file() for name in (SAVED_MODEL, SAVED_MODEL_TEXT))
    return not has_saved_model or (preferred and (path / LITERT).is_file())


def mark_of(path: Path) -> tuple[int, ...]:
    """Return a value that changes when the model is replaced; empty if there is no model."""
    if not is_foreign_model(path):
        return ()
    found: list[int] = []
    for name in _PARTS:
        try:
            state = (path / name).stat()
        except OSError:
            continue
        found += (state.st_ino, state.st_mtime_ns, state.st_size)
    return tuple(found)
