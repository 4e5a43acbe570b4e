"""Spool files: batches that wait while the store cannot be written, one per line, in the order they were made.

The process that appends to a file holds a lock on it, which the system releases however that process ends. So a file
without a lock is an orphan, and the next process that opens the store writes its batches, each of them once. A damaged
line is moved to a file beside the spool, so that it does not block the others.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from stoker.files import make_private_directory, open_private, tighten
from stoker.tracking.store.address import Address
from stoker.tracking.store.events import Batch, DamagedBatchError, decode_batch, encode_batch

# This process's own files. Opening one a second time and closing it would release its lock.
_OURS: set[Path] = set()


def list_directories(address: Address) -> list[Path]:
    """List where spool files may be: beside the store, or with the user's own files if that place is not writable."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return [address.home / "spool", Path(state) / "stoker" / "spool"]


class Spool:
    """The spool of one writer. Its file exists only while batches wait."""

    def __init__(self, address: Address, writer: str) -> None:
        self._name = f"{address.mark}-{writer}.jsonl"
        self._places = list_directories(address)
        # A second file is used if the first cannot take more.
        self._files: list[SpoolFile] = []

    def __bool__(self) -> bool:
        return bool(self._files)

    def __str__(self) -> str:
        return " and ".join(str(file.path) for file in self._files)

    def append(self, batch: Batch) -> None:
        """Add a batch; it is on the disk when this returns.

        Raises:
            OSError: the batch could not be added, and the spool is unchanged.
        """
        text = encode_batch(batch)
        problem: OSError | None = None
        if self._files:
            try:
                return self._files[-1].append(text)
            except OSError as error:
                problem = error
        used = {file.path.parent for file in self._files}
        for place in self._places:
            if place in used:
                continue
            try:
                return self._begin(place / self._name, text)
            except OSError as error:
                problem = problem or error
        assert problem is not None
        raise problem

    def _begin(self, path: Path, text: str) -> None:
        make_private_directory(path.parent)
        file = SpoolFile(path, "a+")
        try:
            file.append(text)
        except OSError:
            file.remove()
            raise
        self._files.append(file)

    @property
    def files(self) -> Sequence[SpoolFile]:
        """The files in use, oldest first."""
        return self._files

    def batches(self) -> Iterator[Batch]:
        """Yield all batches that are not damaged, oldest first."""
        for file in self._files:
            for line in file.read_lines():
                with suppress(DamagedBatchError):
                    yield decode_batch(line)

    def remove(self) -> None:
        """Delete the files, because all batches are in the store."""
        for file in self._files:
            file.remove()
        self._files = []

    def release(self) -> None:
        """Leave the files for the next process that opens the store."""
        for file in self._files:
            file.close()
        self._files = []

    def forget(self) -> None:
        """Drop the files without touching them, because in a forked child they belong to the parent."""
        self._files = []


class SpoolFile:
    """A file of batches, locked by this process until it is closed.

    Raises:
        OSError: the file cannot be opened, or another process holds its lock.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        # The file is unbuffered: data that the disk does not take must not be written again when the file is closed.
        self._file = FileIO(path, mode, opener=open_private)
        tighten(path)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise
        self._length = 0
        _OURS.add(path)

    def append(self, text: str) -> None:
        """Add a line; it is on the disk when this returns."""
        rest = memoryview(text.encode("ascii") + b"\n")
        length = self._length + len(rest)
        try:
            # A full disk takes a part of the data, and reports an error only at the next attempt.
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._length)
            raise
        self._length = length

    def read_lines(self) -> list[bytes]:
        """Return the lines, oldest first. A last line that is cut off is left out: its event was never confirmed."""
        self._file.seek(0)
        *lines, _ = self._file.readall().split(b"\n")
        return lines

    def quarantine(self, line: bytes) -> Path:
        """Append a line that the store cannot take to a file beside this one. It is on the disk when this returns.

        Raises:
            OSError: that file cannot be written.
        """
        place = self.path.with_name(f"{self.path.name}.damaged")
        tighten(place)
        with open(place, "ab", opener=open_private) as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return place

    def remove(self) -> None:
        """Delete the file, because all its batches are in the store."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file, which releases its lock."""
        _OURS.discard(self.path)
        self._file.close()


def open_orphans(address: Address) -> Iterator[SpoolFile]:
    """Open the spool files of this store that no process holds, one at a time."""
    found = [path for place in list_directories(address) for path in place.glob(f"{address.mark}-*.jsonl")]
    # Sorted by name, a writer's second file (in the other directory, or `ID.late.jsonl`) comes after its first.
    for path in sorted(found, key=lambda path: path.name):
        if path not in _OURS:
            with suppress(OSError):
                yield SpoolFile(path, "r+")
