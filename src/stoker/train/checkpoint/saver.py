"""The saver of one training run: it copies the variables, writes them in the background, and restores them.

    with Saver(Checkpoint("runs/today"), named_variables(model), fingerprint) as saver:
        progress = saver.restore() or {"step": 0}
        ...
        if saver.due(step):
            saver.save(step, {"step": step})

`save` takes as long as a copy of the variables into memory that is allocated once; a thread does everything else
(checksums, disk). While that thread writes or uploads, no new save is due: training waits for neither.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from stoker import clock
from stoker.goodput import journal
from stoker.periodic import Every
from stoker.tf_internals.types import Array, Variable
from stoker.train.checkpoint import files, saved
from stoker.train.checkpoint.bucket import bucket_of
from stoker.train.checkpoint.directory import CheckpointDirectory
from stoker.train.checkpoint.options import Checkpoint, CheckpointError
from stoker.train.checkpoint.packing import pack
from stoker.train.checkpoint.saved import BLOB, PROGRESS, VARIABLE, Saved


class BackgroundWriter:
    """Runs one job at a time in a thread.

    Every job has its own thread, which is not a daemon: a program that ends without closing still gets its file
    finished, and one that closes waits for nothing else.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether the last job is still running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, job: Callable[[], None]) -> None:
        """Run `job` in the background; the previous job must have ended.

        Raises:
            CheckpointError: the previous job failed.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name="stoker-checkpoint")
        self._thread.start()

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again in the training's thread
            self._failure = error

    def check(self) -> None:
        """Raise the error of the last job, once.

        Raises:
            CheckpointError: the last write failed.
        """
        if self.busy or self._failure is None:
            return
        failure, self._failure = self._failure, None
        if isinstance(failure, CheckpointError):
            raise failure
        raise CheckpointError(f"saving a checkpoint failed: {failure!r}") from failure

    def wait(self) -> None:
        """Wait for the last job.

        Raises:
            CheckpointError: the job failed.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()


class Saver:
    """The saver of one training run, which owns the directory until `close`.

    `replicas` is the number of replicas in all processes together.

    Args:
        checkpoint: where, how often and how many checkpoints to save.
        variables: the variables to save, by names that are the same in every process of the run.
        fingerprint: readable text, equal for two calls that may resume from each other's checkpoints.
        directory: the directory, if it was already taken.
        damaged: files in the directory that are known to be damaged.
        owned: False leaves the directory to another process.

    Raises:
        CheckpointError: the directory is in use or cannot be written, or a variable cannot be saved.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        variables: Mapping[str, Variable],
        fingerprint: str,
        *,
        directory: CheckpointDirectory | None = None,
        damaged: Iterable[Path] = (),
        owned: bool = True,
    ) -> None:
        self.blobs: dict[str, bytes] = {}
        self.replicas = 1
        self._checkpoint = checkpoint
        self._variables = dict(variables)
        self._fingerprint = fingerprint
        for name, variable in self._variables.items():
            if np.dtype(variable.dtype.as_numpy_dtype).kind == "O":
                raise CheckpointError(
                    f"{name} holds {variable.dtype.name}: only numbers and booleans can be saved"
                )
        self._directory = (
            directory or CheckpointDirectory(checkpoint.local_directory, bucket_of(checkpoint))
            if owned
            else None
        )
        self._writer = BackgroundWriter()
        self._copies: dict[str, Array] = {}
        self._damaged = set(damaged)
        self._every = Every(steps=checkpoint.every_steps, seconds=checkpoint.every_seconds)

    def due(self, step: int) -> bool:
        """Return whether it is time to save and nothing is being written.

        Raises:
            CheckpointError: the last write failed.
        """
        if self._writer.busy:
            return False
        self._writer.check()
        return self._due(step)

    def _due(self, step: int) -> bool:
        return self._every.due(step)

    def save(
        self,
        step: int,
        progress: Mapping[str, object],
        blobs: Mapping[str, bytes] | None = None,
        *,
        wait: bool = False,
    ) -> bool:
        """Copy the variables now and write them in the background.

        Args:
            step: the step of the whole run, which names the file.
            progress: plain values, NumPy arrays and bytes, nested as you like; `restore` returns it.
            blobs: bytes to store separately; `restore` puts them into `self.blobs`.
            wait: whether to wait for the current write, and then for this one.

        Returns:
            False if nothing was saved because the previous checkpoint is still being written.

        Raises:
            CheckpointError: the last write failed, or this one (`wait`).
            TypeError: `progress` holds something that cannot be stored.
        """
        if self._writer.busy and not wait:
            return False
        self._writer.wait()
        arrays: dict[str, Array] = {}
        packed = pack(progress, arrays, PROGRESS)
        arrays |= {BLOB + name: np.frombuffer(blob, np.uint8) for name, blob in (blobs or {}).items()}
        self._copy_variables()
        path = self._new_path(step)
        details = {
            "step": step,
            "saved": clock.utc_timestamp(),
            "fingerprint": self._fingerprint,
            "replicas": self.replicas,
            "progress": packed,
        }
        self._writer.start(lambda: self._write(path, arrays, details))
        self._every.mark(step)
        if wait:
            self._writer.wait()
        return True

    def _own_variables(self) -> Iterable[tuple[str, Variable]]:
        """Return the variables that this process writes."""
        return self._variables.items()

    def _new_path(self, step: int) -> Path:
        """Return the path of a new checkpoint."""
        assert self._directory is not None
        return self._directory.make_path(step)

    def _copy_variables(self) -> None:
        for name, variable in self._own_variables():
            # On a CPU this is a view of the live weights; copying it makes the snapshot.
            value = np.asarray(variable.numpy())
            copy = self._copies.get(name)
            if copy is None or copy.shape != value.shape:
                copy = self._copies[name] = np.empty(value.shape, value.dtype)
            np.copyto(copy, value)

    def _write(self, path: Path, arrays: dict[str, Array], details: Mapping[str, object]) -> None:
        assert self._directory is not None
        stored = [(VARIABLE + name, copy) for name, copy in self._copies.items()]
        files.write(path, stored + list(arrays.items()), details)
        self._directory.prune(self._checkpoint.keep, self._damaged)
        if self._directory.bucket is not None:
            self._directory.bucket.publish(path, self._checkpoint.keep)
        journal.note_counted(self._checkpoint.name, int(str(details["step"])))

    def restore(self, before: int | None = None) -> dict[str, Any] | None:
        """Restore the variables from the newest good checkpoint.

        Args:
            before: look only at checkpoints of steps below this one.

        Returns:
            The `progress` saved with the checkpoint; None if there is no checkpoint.

        Raises:
            CheckpointError: the checkpoint belongs to another model, or to a run with other arguments.
        """
        found = self.newest(before)
        if found is None:
            return None
        self.put_back(found)
        return found.progress

    def newest(self, before: int | None = None) -> Saved | None:
        """Return the newest good checkpoint, read."""
        self._writer.wait()
        return self._find(before)

    def _find(self, before: int | None) -> Saved | None:
        assert self._directory is not None
        return saved.find_newest(self._directory, self._damaged, before)

    def put_back(self, found: Saved) -> None:
        """Give the variables the values of a checkpoint.

        Raises:
            CheckpointError: the checkpoint belongs to another model, or to a run with other arguments.
        """
        found.demand_same_run(self._variables, self._fingerprint)
        found.put_into(self._variables, self.replicas)
        self.blobs = found.blobs
        self._every.mark(found.step)

    def use_memory_of(self, found: Saved) -> None:
        """Reuse the memory that a checkpoint was read into, now that its values are restored."""
        names = [name for name, _ in self._own_variables()]
        self._copies = {name: found.variables[name] for name in names if name in found.variables}

    def wait(self) -> None:
        """Wait until the current write is on disk.

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
            if self._directory is not None:
                self._directory.release()

    def give_up(self) -> None:
        """Release the directory after training failed, without waiting for other workers."""

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
