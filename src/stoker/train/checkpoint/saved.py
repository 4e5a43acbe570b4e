"""The newest good checkpoint of a directory, read and checked once: all that a run needs to resume from it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stoker.doctor.attach import announced
from stoker.errors import CheckpointError
from stoker.tf_internals.types import Array, Variable
from stoker.train.checkpoint import files
from stoker.train.checkpoint.directory import PARTS, CheckpointDirectory, step_of
from stoker.train.checkpoint.options import CheckpointWarning
from stoker.train.checkpoint.packing import unpack
from stoker.train.workers.copies import ReplicaPart, whole_name

VARIABLE, BLOB, PROGRESS = "variable/", "blob/", "progress"
WAY_OUT = "give another directory, or delete this one to start over"


class Saved:
    """The contents of one checkpoint, in memory."""

    def __init__(self, contents: files.Contents) -> None:
        self.path = contents.index.path
        details = contents.index.details
        self.step = int(details["step"])
        self.fingerprint = str(details["fingerprint"])
        # Version 0.1 numbered all copies, including the first one.
        found = _select(contents, VARIABLE)
        self.variables = {name.removesuffix("@0"): array for name, array in found.items()}
        # Files of version 0.1 do not say this, and have copies where later files have parts.
        self.replicas = int(details.get("replicas") or _count_replicas(self.variables))
        self._in_parts = {
            whole_name(name) for name in self.variables if "@" in name and "replicas" in details
        }
        self.blobs = {name: array.tobytes() for name, array in _select(contents, BLOB).items()}
        self.progress: dict[str, Any] = unpack(details["progress"], contents.arrays)
        if not isinstance(self.progress, dict):
            raise TypeError("progress must be a dict")

    def demand_same_run(self, variables: Mapping[str, Variable], fingerprint: str) -> None:
        """Raise a `CheckpointError` if this belongs to another model, or to a run with other arguments."""
        here = {whole_name(name): (one.dtype.name, tuple(one.shape)) for name, one in variables.items()}
        there = {
            whole_name(name): (array.dtype.name, tuple(array.shape)) for name, array in self.variables.items()
        }
        differences = _differences(here, there)
        if differences:
            more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
            raise CheckpointError(f"{self.path} belongs to another model: {differences[0]}{more}; {WAY_OUT}")
        if self.fingerprint != fingerprint:
            raise CheckpointError(
                f"{self.path} belongs to a run with different arguments: {self.fingerprint} there, {fingerprint} here; "
                f"{WAY_OUT}"
            )

    def put_into(self, variables: Mapping[str, Variable], replicas: int) -> None:
        """Give the variables the saved values; `replicas` is the current number of replicas."""
        for name, variable in variables.items():
            divided = isinstance(variable, ReplicaPart) or whole_name(name) in self._in_parts
            anew = replicas != self.replicas and divided
            variable.assign(self._divide_anew(name) if anew else self.variables[name])

    def _divide_anew(self, name: str) -> Array:
        """Return the values for another number of replicas: the first replica takes over the parts of all."""
        whole = whole_name(name)
        parts = [array for other, array in self.variables.items() if whole_name(other) == whole]
        return sum(parts[1:], parts[0]) if name == whole else parts[0] * 0


def read(path: Path) -> Saved:
    """Read a checkpoint, including the files that the other workers of a job wrote for it.

    Raises:
        DamagedFile: this file, or that of another worker, is missing or damaged.
    """
    contents = files.read(path)
    try:
        for part in contents.index.details.get("parts", ()):
            contents.arrays.update(_read_part(path.parent / PARTS / Path(part["file"]).name, part))
        return Saved(contents)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise files.DamagedFile(f"its details are not those of a run ({type(error).__name__})") from None


def _read_part(path: Path, known: Mapping[str, object]) -> dict[str, Array]:
    try:
        found = files.checksum(path)
    except files.DamagedFile as reason:
        raise files.DamagedFile(f"of {path.name}, which belongs to it: {reason}") from None
    if found != (known["size"], known["crc"]):
        raise files.DamagedFile(f"{path.name}, which belongs to it, is not as it was written")
    return dict(files.read(path).arrays)


@announced.region(announced.RESTORE)
def find_newest(
    directory: CheckpointDirectory, damaged: set[Path], before: int | None = None
) -> Saved | None:
    """Return the newest checkpoint that can be read; None if there is none.

    Args:
        directory: where the checkpoints are.
        damaged: gets the files that are found damaged, so that each is reported once.
        before: look only at checkpoints of steps below this one, for a run that rewinds behind a spike.
    """
    if directory.bucket is not None:
        directory.bucket.pull(before)
    candidates = [path for path in reversed(directory.files()) if before is None or step_of(path) < before]
    for path in candidates:
        if path in damaged:
            continue
        try:
            return read(path)
        except files.DamagedFile as reason:
            warnings.warn(f"skipped the checkpoint {path}: {reason}", CheckpointWarning, stacklevel=3)
            damaged.add(path)
    if candidates:
        message = f"no good checkpoint is left in {directory.path}: training starts from the beginning"
        warnings.warn(message, CheckpointWarning, stacklevel=3)
    return None


def _select(contents: files.Contents, prefix: str) -> dict[str, Array]:
    return {
        name.removeprefix(prefix): array for name, array in contents.arrays.items() if name.startswith(prefix)
    }


def _count_replicas(variables: Mapping[str, Variable]) -> int:
    """Return the number of replicas, for files that do not state it."""
    return 1 + max((int(name.partition("@")[2] or 0) for name in variables), default=0)


_Kinds = Mapping[str, tuple[str, tuple[int, ...]]]


def _differences(here: _Kinds, saved: _Kinds) -> list[str]:
    """Return the differences, one line each. A type or shape comes first, since a changed layer shifts many names."""
    shared = [name for name in here if name in saved and here[name] != saved[name]]
    lines = [f"{name} is {_describe(saved[name])} there, {_describe(here[name])} here" for name in shared]
    lines += [
        f"{name} ({_describe(here[name])}) is not in the checkpoint" for name in here if name not in saved
    ]
    lines += [
        f"{name} ({_describe(saved[name])}) is only in the checkpoint" for name in saved if name not in here
    ]
    return lines


def _describe(kind: tuple[str, tuple[int, ...]]) -> str:
    dtype, shape = kind
    return f"{dtype}[{', '.join(map(str, shape))}]"
