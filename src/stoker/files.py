"""Where Stoker keeps its files, and how it writes one: whole, or not at all.

Everything a project's runs leave is below `.stoker` in the directory they were started from (for `stoker check`, in the
project's).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

HOME = Path(".stoker")
# What only its owner may read and write.
_PRIVATE_DIRECTORY, _PRIVATE_FILE = 0o700, 0o600
# Records of runs, and the profiler's events beside them.
RUNS = HOME / "runs"
# Logs of the workers of `stoker launch`, a directory a job.
JOBS = HOME / "jobs"
# What the trainer decided by measuring.
PLANS = HOME / "plans"
# Results of `stoker check` for files that did not change.
CACHE = HOME / "cache"


def user_cache(subject: str) -> Path:
    """The directory that all projects share: `STOKER_CACHE_DIR`, or `stoker` in the user's cache directory."""
    own = os.environ.get("STOKER_CACHE_DIR")
    if own:
        return Path(own) / subject
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stoker" / subject


def make_private_directory(path: Path) -> None:
    """Make a directory with the parents it lacks; what is made here is open to its owner only.

    Raises:
        OSError: it cannot be made.
    """
    if path.is_dir():
        return
    make_private_directory(path.parent)
    # Another process may be quicker; a file in its place is an error.
    path.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """An `opener` for `open`: a file that it makes can be read and written by its owner only."""
    return os.open(path, flags, _PRIVATE_FILE)


def tighten(path: Path) -> bool:
    """Close an existing file to everybody but its owner; return whether it was open to others.

    What belongs to somebody else stays as it is: only its owner can change that.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or not status.st_mode & 0o077:
            return False
        os.chmod(path, _PRIVATE_FILE)
    except OSError:
        return False
    return True


def write_atomically(path: Path, data: bytes | str, *, durable: bool = False, private: bool = False) -> None:
    """Write a file so that a reader sees the old content or the new, never a part of it; text is UTF-8.

    `durable` waits until it would survive a power cut; `private` is for its owner only.

    Raises:
        OSError: it cannot be written; the old content is untouched, and nothing is left beside it.
    """
    with replacing(path, durable=durable, private=private) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def replacing(
    path: Path, *, durable: bool = False, private: bool = False, temporary: Path | None = None
) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, with the permissions of the one it replaces.

    With `private`, its owner alone can read and write it, whatever the permissions were. A link stays a link: what it
    leads to is replaced. `temporary` is where the new content is until then, a hidden neighbour with the number of this
    process unless said otherwise.

    Raises:
        OSError: as `write_atomically`.
    """
    target = Path(os.path.realpath(path))
    beside = temporary or target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(beside, "wb", opener=open_private if private else None) as file:
            if private:
                # One that a killed process has left may be open to others.
                os.fchmod(file.fileno(), _PRIVATE_FILE)
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if target.exists() and not private:
            os.chmod(beside, target.stat().st_mode & 0o7777)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Make a rename or a removal in it survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
