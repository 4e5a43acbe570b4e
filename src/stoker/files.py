"""Where Stoker keeps its files, and how it writes one: completely or not at all.

Everything that a project's runs leave behind is below `.stoker`, in the directory from which they were started (for
`stoker check`, in the project's directory).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

HOME = Path(".stoker")
# The modes of what only its owner may read and write.
_PRIVATE_DIRECTORY, _PRIVATE_FILE = 0o700, 0o600
# Records of runs, with the profiler's events beside them.
RUNS = HOME / "runs"
# Logs of the workers of `stoker launch`, with a directory for each job.
JOBS = HOME / "jobs"
# The trainer's decisions, made by measuring.
PLANS = HOME / "plans"
# Results of `stoker check` for files that have not changed.
CACHE = HOME / "cache"


def user_cache(subject: str) -> Path:
    """Return the directory that all projects share: `STOKER_CACHE_DIR`, or `stoker` in the user's cache directory."""
    own = os.environ.get("STOKER_CACHE_DIR")
    if own:
        return Path(own) / subject
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stoker" / subject


def make_private_directory(path: Path) -> None:
    """Make a directory and its missing parents. Only their owner can open those that are made here.

    Raises:
        OSError: the directory cannot be made.
    """
    if path.is_dir():
        return
    make_private_directory(path.parent)
    # Another process may be quicker. A file in the directory's place is an error.
    path.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, as an `opener` for `open`: only its owner can read and write a file that this creates."""
    return os.open(path, flags, _PRIVATE_FILE)


def tighten(path: Path) -> bool:
    """Take the permissions for an existing file away from everybody but its owner. Return whether others had any.

    A file that belongs to somebody else stays as it is, because only its owner can change its permissions.
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
    """Write a file so that a reader sees the old content or the new, never a part of it. Text is written as UTF-8.

    `durable` waits until the file would survive a power cut; `private` makes it readable only to its owner.

    Raises:
        OSError: the file cannot be written; the old content is untouched, and nothing is left beside it.
    """
    with replacing(path, durable=durable, private=private) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def replacing(
    path: Path, *, durable: bool = False, private: bool = False, temporary: Path | None = None
) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` if the block succeeds, with the permissions of the file it replaces.

    With `private`, only its owner can read and write it, whatever the permissions were. A link stays a link: the file
    that it leads to is replaced. `temporary` is where the new content is until then; by default, a hidden file beside
    it with the number of this process in its name.

    Raises:
        OSError: as in `write_atomically`.
    """
    target = Path(os.path.realpath(path))
    beside = temporary or target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(beside, "wb", opener=open_private if private else None) as file:
            if private:
                # A file left by a killed process may be open to others.
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
    """Make sure that a rename or a removal in the directory survives a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
