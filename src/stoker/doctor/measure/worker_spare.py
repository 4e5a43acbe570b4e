"""A worker's spare: a process that has already imported what the worker imported, and waits to take its place.

The agent of `stoker launch --standby` starts a spare with the worker's own command and environment. `bootstrap` calls
`wait_for_place` in it, before the program. When that returns, the process has the environment of the worker that it
becomes, and Python goes on to start the program as in any worker: nothing is imitated.

TensorFlow and NumPy read variables when they are imported, and a program may set some before. So a worker notes what it
imports, and what it had changed in its environment by then; its spare imports the same in the same environment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

# The variables that `bootstrap` reads. In a worker: the file for its notes. In a spare: a file descriptor from which it
# reads a byte when it is needed, a colon, and the file with what to import.
NOTES, SPARE = "STOKER_IMPORTS", "STOKER_SPARE"
# Where a spare finds its new environment, beside the file with what to import.
PLACE = ".place"
_LIBRARIES = ("numpy", "keras", "tensorflow")
_NOTED = (*_LIBRARIES, "stoker")
# TensorFlow reads it when it starts, not when it is imported, and each process names a directory of its own in it.
_READ_LATER = "TF_XLA_FLAGS"

# What happened to an environment: the new values, None for a variable that is gone.
Changes = dict[str, str | None]


@dataclass(frozen=True)
class WorkerImports:
    """The modules that a worker imported, in order, and what it had changed in its environment before the first one."""

    modules: list[str]
    changes: Changes


class _ImportNotes:
    """A finder that finds nothing, and writes a line for each module that the program imports."""

    def __init__(self, path: str) -> None:
        self._path, self._pid = path, os.getpid()
        self._before = dict(os.environ)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Note the name; with the libraries that read variables, what has changed in the environment."""
        if name.partition(".")[0] not in _NOTED or os.getpid() != self._pid:
            return
        # TensorFlow itself sets variables while it is imported.
        reads = name in _LIBRARIES and "tensorflow" not in sys.modules
        changes = find_changes(self._before, os.environ) if reads else None
        # Not kept open: the program has no files but its own.
        with contextlib.suppress(OSError), open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps([name, changes]) + "\n")


def note_imports(path: str) -> None:
    """Have this process note what it imports from now on."""
    sys.meta_path.insert(0, _ImportNotes(path))


def read_notes(path: Path) -> WorkerImports | None:
    """Read what a worker has noted so far.

    Returns:
        None if it has not imported TensorFlow, or changed variables between two imports of libraries that read them: no
        other process can then import both as it did.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    # The last line may be half written.
    notes: list[tuple[str, Changes | None]] = [json.loads(line) for line in text.split("\n")[:-1]]
    seen = [changes for _, changes in notes if changes is not None]
    modules = [name for name, _ in notes]
    if "tensorflow" not in modules or any(one != seen[0] for one in seen):
        return None
    return WorkerImports(modules, seen[0])


def write_imports(imports: WorkerImports, path: Path) -> None:
    """Write what a spare is to import."""
    path.write_text(json.dumps(asdict(imports)), encoding="utf-8")


def wait_for_place(text: str, at_start: Mapping[str, str]) -> None:
    """Import what the worker imported, and wait until the process is needed; then take the worker's environment.

    If it is never needed, or the imports fail, this does not return: the process ends.

    Args:
        text: the value of the variable.
        at_start: the environment before the user's own `sitecustomize`, whose changes stay.
    """
    is_worker = False
    try:
        pipe, _, path = text.partition(":")
        imports = WorkerImports(**json.loads(Path(path).read_text(encoding="utf-8")))
        kept = find_changes(at_start, os.environ)
        _apply(imports.changes)
        before = dict(os.environ)
        _import(imports.modules)
        kept |= find_changes(before, os.environ)
        if "tensorflow" in sys.modules and os.read(int(pipe), 1):
            os.close(int(pipe))
            place: Changes = json.loads(Path(path).with_suffix(PLACE).read_text(encoding="utf-8"))
            _apply(dict.fromkeys(set(os.environ) - set(place)) | place | kept)
            is_worker = True
    finally:
        if not is_worker:
            # Python would go on after an error here. A worker that starts as usual takes the place.
            os._exit(1)


def find_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    """Return what differs between two environments."""
    names = {**before, **after}
    changes = {name: after.get(name) for name in names if before.get(name) != after.get(name)}
    changes.pop(_READ_LATER, None)
    return changes


def _apply(changes: Changes) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        elif os.environ.get(name) != value:
            os.environ[name] = value


def _import(modules: Iterable[str]) -> None:
    """Import modules as the program would, from its own directory first."""
    own = os.getcwd() if sys.argv[0] == "-m" else os.path.dirname(os.path.realpath(sys.argv[0]))
    is_safe = getattr(sys.flags, "safe_path", False)
    sys.path[:0] = [] if is_safe else [own]
    for name in modules:
        # A worker notes a module also if it could not import it.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if not is_safe:
        sys.path.remove(own)
