"""The saver of one training run: copies the variables, has them written in the background, brings them back.

    with Saver(Checkpoint("runs/today"), named_variables(model), fingerprint) as saver:
        progress = saver.restore() or {"step": 0}
        ...
        if saver.due(step):
            saver.save(step, {"step": step})

`save` takes as long as a copy of the variables into memory that is allocated once; everything else (checksums, disk)
is done by a thread. While that thread still writes, no new save is due: training never waits for the disk.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from stoker import clock
from stoker.attach import announced
from stoker.train.checkpoint import files
from stoker.train.checkpoint.directory import CheckpointDirectory, finished, step_of
from stoker.train.checkpoint.options import Checkpoint, CheckpointError, CheckpointWarning
from stoker.train.checkpoint.packing import pack, unpack
from stoker.train.checkpoint.writer import BackgroundWriter

_VARIABLE, _BLOB, _PROGRESS = "variable/", "blob/", "progress"


class Saver:
    """One per training run; the directory is its own until `close`.

    Args:
        checkpoint: where, how often, how many.
        variables: what is saved, by names that are the same in every process of the run.
        fingerprint: readable text that is equal for two calls whose checkpoints may stand for each other.

    Raises:
        CheckpointError: the directory is in use or cannot be written, or a variable cannot be saved.
    """

    def __init__(self, checkpoint: Checkpoint, variables: Mapping[str, Any], fingerprint: str) -> None:
        self.blobs: dict[str, bytes] = {}
        self._checkpoint = checkpoint
        self._variables = dict(variables)
        self._fingerprint = fingerprint
        for name, variable in self._variables.items():
            if np.dtype(variable.dtype.as_numpy_dtype).kind == "O":
                raise CheckpointError(
                    f"{name} holds {variable.dtype.name}: only numbers and truth values can be saved"
                )
        self._directory = CheckpointDirectory(checkpoint.directory)
        self._writer = BackgroundWriter()
        self._copies: dict[str, Any] = {}
        self._damaged: set[Path] = set()
        self._mark(0)

    def _mark(self, step: int) -> None:
        self._last_step, self._last_ns = step, clock.real_ns()

    def due(self, step: int) -> bool:
        """Whether it is time to save, and nothing is being written.

        Raises:
            CheckpointError: the last write failed.
        """
        if self._writer.busy:
            return False
        self._writer.check()
        if (steps := self._checkpoint.every_steps) is not None:
            return step - self._last_step >= steps
        seconds = self._checkpoint.every_seconds or 0.0
        return clock.real_ns() - self._last_ns >= seconds * 1e9

    def save(
        self,
        step: int,
        progress: Mapping[str, Any],
        blobs: Mapping[str, bytes] | None = None,
        *,
        wait: bool = False,
    ) -> bool:
        """Copy the variables now and write them in the background.

        Args:
            step: of the whole run; it names the file.
            progress: plain values, NumPy arrays and bytes, nested as you like; `restore` returns it.
            blobs: bytes that are kept apart; `restore` puts them into `self.blobs`.
            wait: until what is being written is done, and then for this one.

        Returns:
            False when nothing was saved because the one before is still being written.

        Raises:
            CheckpointError: the last write failed, or this one (`wait`).
            TypeError: `progress` holds something that cannot be stored.
        """
        if self._writer.busy and not wait:
            return False
        self._writer.wait()
        arrays: dict[str, Any] = {}
        packed = pack(progress, arrays, _PROGRESS)
        arrays |= {_BLOB + name: np.frombuffer(blob, np.uint8) for name, blob in (blobs or {}).items()}
        self._copy_variables()
        details = {
            "step": step,
            "saved": clock.utc_timestamp(),
            "fingerprint": self._fingerprint,
            "progress": packed,
        }
        self._writer.start(lambda: self._write(step, arrays, details))
        self._mark(step)
        if wait:
            self._writer.wait()
        return True

    def _copy_variables(self) -> None:
        for name, variable in self._variables.items():
            # On a CPU this is a view of the live weights: the copy is what makes it a snapshot.
            value = np.asarray(variable.numpy())
            copy = self._copies.get(name)
            if copy is None or copy.shape != value.shape:
                copy = self._copies[name] = np.empty(value.shape, value.dtype)
            np.copyto(copy, value)

    def _write(self, step: int, arrays: dict[str, Any], details: dict[str, Any]) -> None:
        stored = [(_VARIABLE + name, copy) for name, copy in self._copies.items()]
        files.write(self._directory.new(step), stored + list(arrays.items()), details)
        self._directory.prune(self._checkpoint.keep, self._damaged)

    @announced.region(announced.RESTORE)
    def restore(self, before: int | None = None) -> dict[str, Any] | None:
        """Bring the variables back as they were at the newest good checkpoint.

        Args:
            before: only checkpoints of steps below this one, for a run that goes back behind a spike.

        Returns:
            The `progress` saved with it; None when there is no checkpoint.

        Raises:
            CheckpointError: the checkpoint is of another model or of a run with other arguments.
        """
        self._writer.wait()
        candidates = [p for p in reversed(self._directory.files()) if before is None or step_of(p) < before]
        for path in candidates:
            try:
                index = _checked(path)
            except files.DamagedFile as reason:
                if path not in self._damaged:
                    warnings.warn(f"skipped the checkpoint {path}: {reason}", CheckpointWarning, stacklevel=2)
                self._damaged.add(path)
                continue
            return self._load(index)
        if candidates:
            message = (
                f"no good checkpoint is left in {self._directory.path}: training starts from the beginning"
            )
            warnings.warn(message, CheckpointWarning, stacklevel=2)
        return None

    def _load(self, index: files.Index) -> dict[str, Any]:
        self._demand_same_run(index)
        for name, array in files.read_arrays(index, (_VARIABLE + name for name in self._variables)):
            self._variables[name.removeprefix(_VARIABLE)].assign(array)
        blobs = files.read_arrays(index, [name for name in index.entries if name.startswith(_BLOB)])
        self.blobs = {name.removeprefix(_BLOB): array.tobytes() for name, array in blobs}
        self._mark(index.details["step"])
        return _progress_in(index)

    def _demand_same_run(self, index: files.Index) -> None:
        way_out = "give another directory, or delete this one to start over"
        saved = {n.removeprefix(_VARIABLE): e for n, e in index.entries.items() if n.startswith(_VARIABLE)}
        here = {n: (v.dtype.name, tuple(v.shape)) for n, v in self._variables.items()}
        differences = _differences(here, {n: (e.dtype, e.shape) for n, e in saved.items()})
        if differences:
            more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
            raise CheckpointError(f"{index.path} is of another model: {differences[0]}{more}; {way_out}")
        fingerprint = index.details["fingerprint"]
        if fingerprint != self._fingerprint:
            raise CheckpointError(
                f"{index.path} is of a run with other arguments: {fingerprint} there, {self._fingerprint} here; "
                f"{way_out}"
            )

    def wait(self) -> None:
        """Until what is being written is safe.

        Raises:
            CheckpointError: the last write failed.
        """
        self._writer.wait()

    def close(self) -> None:
        """Wait for the write and release the directory.

        Raises:
            CheckpointError: the last write failed.
        """
        try:
            self._writer.wait()
        finally:
            self._directory.release()

    def __enter__(self) -> Saver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except CheckpointError:
            if error is None:
                raise


def saved_progress(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """What the newest good checkpoint says of the run's progress, before there is a model to restore.

    It takes no lock, changes nothing and passes over damaged files in silence: `Saver.restore` speaks of them.
    """
    for path in reversed(finished(Path(checkpoint.directory).expanduser())):
        with contextlib.suppress(files.DamagedFile):
            return _progress_in(_checked(path))
    return None


def _checked(path: Path) -> files.Index:
    index = files.read_index(path)
    files.verify(index)
    return index


def _progress_in(index: files.Index) -> dict[str, Any]:
    arrays = dict(files.read_arrays(index, [name for name in index.entries if name.startswith(_PROGRESS)]))
    progress: dict[str, Any] = unpack(index.details["progress"], arrays)
    return progress


_Kinds = Mapping[str, tuple[str, tuple[int, ...]]]


def _differences(here: _Kinds, saved: _Kinds) -> list[str]:
    """What differs, a line each: type or shape first, since a changed layer shifts many names."""
    shared = [name for name in here if name in saved and here[name] != saved[name]]
    lines = [f"{name} is {_shown(saved[name])} there, {_shown(here[name])} here" for name in shared]
    lines += [f"{name} ({_shown(here[name])}) is not in the checkpoint" for name in here if name not in saved]
    lines += [
        f"{name} ({_shown(saved[name])}) is only in the checkpoint" for name in saved if name not in here
    ]
    return lines


def _shown(kind: tuple[str, tuple[int, ...]]) -> str:
    dtype, shape = kind
    return f"{dtype}[{', '.join(map(str, shape))}]"
