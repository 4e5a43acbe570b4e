"""The directory of a run's checkpoints: ordered names, one process at a time, no leftovers, the oldest pruned."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.files import sync_directory
from stoker.train.checkpoint.files import TEMPORARY
from stoker.train.checkpoint.options import CheckpointError

if TYPE_CHECKING:
    from stoker.train.checkpoint.bucket import CheckpointBucket

_NAME = re.compile(r"checkpoint-(\d+)-step-(\d+)\.stoker")
_LOCK = "lock"
PARTS = "parts"

# A POSIX lock keeps other processes out and vanishes with its process, however that dies; unlike flock it is not
# inherited by forked data workers. It does not see a second user in the same process, but this set does.
_open_here: set[Path] = set()


class CheckpointDirectory:
    """The directory of one saver, which owns it until `release`.

    Args:
        directory: the path on this machine.
        open_bucket: opens the bucket that the directory is a copy of, if checkpoints are kept elsewhere.

    Raises:
        CheckpointError: another run has the directory, or it cannot be created or written.
    """

    def __init__(
        self, directory: str | os.PathLike[str], open_bucket: Callable[[Path], CheckpointBucket] | None = None
    ) -> None:
        self.path = Path(directory).expanduser().absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path = self.path.resolve()
            self._take()
            self._remove_leftovers()
            self.bucket = None if open_bucket is None else open_bucket(self.path)
        except OSError as error:
            raise CheckpointError(
                f"cannot use {self.path} for checkpoints: {error.strerror}; give a directory that can be written"
            ) from error

    def _take(self) -> None:
        if self.path in _open_here:
            raise CheckpointError(
                f"this process already saves checkpoints in {self.path}: give each run a directory of its own"
            )
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            owner = os.read(self._lock, 32).decode(errors="replace").strip()
            os.close(self._lock)
            raise CheckpointError(
                f"process {owner} already saves checkpoints in {self.path}: wait for it to end, "
                "or give each run a directory of its own"
            ) from None
        # The number is only for people: on a full disk the lock holds without it.
        with contextlib.suppress(OSError):
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        _open_here.add(self.path)

    def _remove_leftovers(self) -> None:
        try:
            for folder in (self.path, self.path / PARTS):
                for leftover in folder.glob(f"*{TEMPORARY}"):
                    leftover.unlink()
            known = {part.name for path in self.files() for part in parts_of(path)}
            for part in (self.path / PARTS).glob("*"):
                if part.name not in known:
                    part.unlink()
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Let other processes use the directory."""
        if self.path in _open_here:
            _open_here.discard(self.path)
            os.close(self._lock)

    def files(self) -> list[Path]:
        """Return the finished checkpoints, oldest first."""
        return list_finished(self.path)

    def make_path(self, step: int) -> Path:
        """Return the path of the next checkpoint."""
        existing = self.files()
        match = _NAME.fullmatch(existing[-1].name) if existing else None
        number = int(match[1]) + 1 if match else 1
        return self.path / f"checkpoint-{number:08d}-step-{step}.stoker"

    def prune(self, keep: int, useless: set[Path]) -> None:
        """Remove damaged checkpoints and all but the newest `keep` good ones."""
        files = self.files()
        good = [path for path in files if path not in useless]
        old = [path for path in files if path not in good[-keep:]]
        for path in old:
            path.unlink(missing_ok=True)
            for part in parts_of(path):
                part.unlink(missing_ok=True)
        if old:
            sync_directory(self.path)


def part_path(path: Path, rank: int) -> Path:
    """Return the file of a worker that belongs to a checkpoint."""
    return path.parent / PARTS / f"{path.stem}.worker-{rank}{path.suffix}"


def parts_of(path: Path) -> list[Path]:
    """Return the files of workers that belong to a checkpoint."""
    return sorted((path.parent / PARTS).glob(f"{path.stem}.worker-*{path.suffix}"))


def list_finished(directory: Path) -> list[Path]:
    """Return the finished checkpoints, oldest first: in the order in which they were saved, whatever their steps."""
    paths = directory.iterdir() if directory.is_dir() else ()
    names = ((_NAME.fullmatch(path.name), path) for path in paths)
    return [path for _, path in sorted((int(match[1]), path) for match, path in names if match)]


def step_of(path: Path) -> int:
    """Return the step in a checkpoint's name."""
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return int(match[2])
