"""The checkpoint of a job: a file with what all workers share, which makes it count, and a small file per other worker.

The chief writes variables, position and progress, as a single process does. Every other worker writes the parts of
metrics that its replicas hold. The chief's file is written last, once all others are on the disk, and names them with
their checksums. Without it, the others are leftovers; if one of them is missing or was changed, an earlier checkpoint
is used. All workers need the same directory.

    run/checkpoint-00000007-step-1400.stoker
    run/parts/checkpoint-00000007-step-1400.worker-1.stoker
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stoker import clock
from stoker.errors import CheckpointError
from stoker.periodic import Every
from stoker.tf_internals.types import Array, Variable
from stoker.train.checkpoint import files, saved
from stoker.train.checkpoint.bucket import bucket_of
from stoker.train.checkpoint.directory import CheckpointDirectory, part_path
from stoker.train.checkpoint.options import Checkpoint
from stoker.train.checkpoint.saved import BLOB, VARIABLE, Saved
from stoker.train.checkpoint.saver import Saver
from stoker.train.workers.copies import ReplicaPart
from stoker.train.workers.group import Group

# A worker that has not written its few bytes after this time never will.
_PATIENCE_S = 600.0
_LOOK_S = 0.005
# Look for the part elsewhere this often: a worker on another machine uploads it.
_LOOK_ELSEWHERE_S = 1.0


class ChiefSaver(Saver):
    """Writes the file that completes a checkpoint, once the other workers have written theirs."""

    def __init__(self, *given: Any, group: Group, **options: Any) -> None:
        super().__init__(*given, **options)
        self._group = group
        self._given_up = threading.Event()

    def _new_path(self, step: int) -> Path:
        path = super()._new_path(step)
        self._group.ask_chief(lambda: path.name)
        return path

    def _find(self, before: int | None) -> Saved | None:
        found = super()._find(before)
        self._group.ask_chief(lambda: None if found is None else found.path.name)
        return found

    def _write(self, path: Path, arrays: dict[str, Array], details: Mapping[str, object]) -> None:
        parts = [self._wait_for_part(part_path(path, rank)) for rank in range(1, self._group.count)]
        super()._write(path, arrays, {**details, "parts": parts})

    def _wait_for_part(self, path: Path) -> dict[str, object]:
        """Wait for another worker's file and return it."""
        deadline = clock.real_ns() + _PATIENCE_S * 1e9
        looked = Every(seconds=_LOOK_ELSEWHERE_S)
        while not path.exists():
            if self._directory is not None and self._directory.bucket is not None and looked.due():
                self._directory.bucket.fetch_part(path)
                looked.mark()
            if self._given_up.wait(_LOOK_S) or clock.real_ns() > deadline:
                raise CheckpointError(
                    f"{path} was not written: all workers need the same checkpoint directory"
                )
        content = path.read_bytes()
        return {"file": path.name, "size": len(content), "crc": zlib.crc32(content)}

    def give_up(self) -> None:
        self._given_up.set()


class WorkerSaver(Saver):
    """The saver of a worker that is not the chief: it writes its own parts, and reads what the chief reads."""

    def __init__(
        self, checkpoint: Checkpoint, variables: Mapping[str, Variable], fingerprint: str, *, group: Group
    ) -> None:
        super().__init__(checkpoint, variables, fingerprint, directory=None, owned=False)
        self._group = group
        self._checkpoint = checkpoint
        self._path = checkpoint.local_directory.expanduser().absolute()
        open_bucket = bucket_of(checkpoint)
        self._bucket = None if open_bucket is None else open_bucket(self._path)

    def _due(self, step: int) -> bool:
        """Return False: the chief decides when to save."""
        return False

    def _own_variables(self) -> Iterable[tuple[str, Variable]]:
        return ((name, one) for name, one in self._variables.items() if isinstance(one, ReplicaPart))

    def _new_path(self, step: int) -> Path:
        return part_path(self._path / str(self._group.ask_chief(lambda: None)), self._group.rank)

    def _write(self, path: Path, arrays: dict[str, Array], details: Mapping[str, object]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = [(VARIABLE + name, copy) for name, copy in self._copies.items()]
        stored += [(name, array) for name, array in arrays.items() if name.startswith(BLOB)]
        files.write(path, stored, {"step": details["step"]})
        if self._bucket is not None:
            self._bucket.upload_part(path)

    def _find(self, before: int | None) -> Saved | None:
        return read_chosen(self._checkpoint, self._group)


def read_chosen(checkpoint: Checkpoint, group: Group) -> Saved | None:
    """On a worker that is not the chief, read the checkpoint from which the chief resumes.

    Raises:
        CheckpointError: the checkpoint cannot be read here.
    """
    name = group.ask_chief(lambda: None)
    if name is None:
        return None
    path = checkpoint.local_directory.expanduser().absolute() / str(name)
    if (open_bucket := bucket_of(checkpoint)) is not None:
        open_bucket(path.parent).fetch(path.name)
    try:
        return saved.read(path)
    except files.DamagedFile as reason:
        raise CheckpointError(
            f"worker {group.rank} cannot continue from {path}: {reason}; all workers need the same directory"
        ) from reason


def read_newest(directory: CheckpointDirectory, damaged: set[Path], group: Group) -> Saved | None:
    """On the chief, or alone, read the newest good checkpoint and tell the other workers its name."""
    found = saved.find_newest(directory, damaged)
    if not group.alone:
        group.ask_chief(lambda: None if found is None else found.path.name)
    return found
