"""`stoker.Checkpoint`: where the state of a training run is saved, how often, and how many are kept.

stoker.fit(model, x, y, epochs=100, checkpoint=stoker.Checkpoint("runs/today", every="5min", keep=3))

After a crash, the same call continues from the newest good checkpoint and ends with the same bits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from stoker import storage, units
from stoker.errors import CheckpointError, UsageError, check_local_path
from stoker.files import user_cache

__all__ = ["Checkpoint", "CheckpointError", "CheckpointOptionError", "CheckpointWarning"]


class CheckpointOptionError(UsageError, ValueError):
    """An option of `stoker.Checkpoint` makes no sense."""


class CheckpointWarning(UserWarning):
    """Something was lost, but training continues: a damaged file, a callback that cannot be restored."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to save a run, and how many checkpoints to keep.

    Args:
        directory: the directory for the checkpoints of one run, created if missing; or its URL (`s3://bucket/run`).
        every: a duration with its unit ("30s", "5m", "5min", "1.5h", "2d") or a number of steps.
        keep: how many of the newest checkpoints to keep.

    Raises:
        CheckpointOptionError: an option is invalid.
    """

    directory: str | os.PathLike[str]
    every: str | int = "5min"
    keep: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.directory, str | os.PathLike) or not os.fspath(self.directory):
            raise CheckpointOptionError(
                f"checkpoint directory {self.directory!r}: give the path of a directory, such as 'checkpoints'"
            )
        if not self.is_elsewhere:
            check_local_path(self.directory)
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 1:
            raise CheckpointOptionError(
                f"keep={self.keep!r}: give the number of checkpoints to keep, 1 or more"
            )
        if self.every_seconds is None and self.every_steps is None:
            raise CheckpointOptionError(
                f"every={self.every!r}: give a duration such as '30s', '5min' or '1.5h', or a number of steps"
            )

    @classmethod
    def of(cls, value: str | os.PathLike[str] | Checkpoint) -> Checkpoint:
        """Turn a `checkpoint=` argument into options: options stay as they are, a directory gets the defaults."""
        return value if isinstance(value, Checkpoint) else cls(value)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the directory is a URL."""
        return storage.is_url(self.directory)

    @property
    def local_directory(self) -> Path:
        """The local directory for checkpoints: the directory itself or, for a URL, one that belongs to the URL."""
        if self.is_elsewhere:
            return storage.folder_of(user_cache("checkpoints"), os.fspath(self.directory))
        return Path(self.directory)

    @property
    def name(self) -> str:
        """The directory as messages show it."""
        where = os.fspath(self.directory)
        return storage.show_url(where) if self.is_elsewhere else where

    @property
    def every_seconds(self) -> float | None:
        """The interval in seconds; None when it is a number of steps."""
        if not isinstance(self.every, str):
            return None
        # "5" could mean steps or seconds.
        has_unit = self.every.strip()[-1:].isalpha()
        return (units.seconds_of(self.every) or None) if has_unit else None

    @property
    def every_steps(self) -> int | None:
        """The interval in steps; None when it is a duration."""
        if isinstance(self.every, bool) or not isinstance(self.every, int):
            return None
        return self.every if self.every > 0 else None


CheckpointLike: TypeAlias = str | os.PathLike[str] | Checkpoint | None
