"""What waits while the store cannot be written: a file of batches, a line each, in the order in which they were made.

The file is locked by the process that appends to it, and the system lets go of the lock however that process ends:
a file that is not locked is an orphan, and whoever opens the store next writes its batches, each of them once. A line
that is damaged is moved to a file beside the spool, so that it does not keep the others out.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from stoker.files import make_private_directory, open_private, tighten
from stoker.tracking.store.address import Address
from stoker.tracking.store.applying import Batch
from stoker.tracking.store.entries import is_entry

# Files of this process: opening one of them a second time and closing it would let go of its lock.
_OURS: set[Path] = set()


def directories(address: Address) -> list[Path]:
    """Where spools may be: beside the store, or, where nothing can be written there, with the user's own files."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return [address.home / "spool", Path(state) / "stoker" / "spool"]


class DamagedLine(Exception):
    """A line that is not a batch."""


class Spool:
    """The spool of one writer; no file before the first batch, none after the last was written."""

    def __init__(self, address: Address, writer: str) -> None:
        self._name = f"{address.mark}-{writer}.jsonl"
        self._places = directories(address)
        # A second one where the first cannot take more.
        self._files: list[SpoolFile] = []

    def __bool__(self) -> bool:
        return bool(self._files)

    def __str__(self) -> str:
        return " and ".join(str(file.path) for file in self._files)

    def append(self, batch: Batch) -> None:
        """Add a batch, on the disk when this returns.

        Raises:
            OSError: it could not be added; the spool is as it was.
        """
        text = json.dumps([batch.writer, batch.number, batch.entries], separators=(",", ":"))
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
        """The files there are, oldest first."""
        return self._files

    def batches(self) -> Iterator[Batch]:
        """All of them, oldest first, but for those that are damaged."""
        for file in self._files:
            for line in file.lines():
                with suppress(DamagedLine):
                    yield parse(line)

    def remove(self) -> None:
        """They are all in the store."""
        for file in self._files:
            file.remove()
        self._files = []

    def let_go(self) -> None:
        """Leave the files for whoever opens the store next."""
        for file in self._files:
            file.close()
        self._files = []

    def forget(self) -> None:
        """In a forked child: the files are the parent's."""
        self._files = []


class SpoolFile:
    """A file of batches, locked by this process until it is closed.

    Raises:
        OSError: it cannot be opened, or another process has it locked.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        # Without a buffer: what the disk does not take must not be tried again when the file is closed.
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
        """Add a line, on the disk when this returns."""
        rest = memoryview(text.encode("ascii") + b"\n")
        length = self._length + len(rest)
        try:
            # A disk that is full takes a part, and says so only at the next attempt.
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._length)
            raise
        self._length = length

    def lines(self) -> list[bytes]:
        """A line a batch, oldest first; a last one that is cut off is of a batch that nobody was told is kept."""
        self._file.seek(0)
        *lines, _ = self._file.readall().split(b"\n")
        return lines

    def quarantine(self, line: bytes) -> Path:
        """Put a line that cannot be written into a file beside this one, on the disk when this returns; that file.

        Raises:
            OSError: it cannot be put there.
        """
        place = self.path.with_name(f"{self.path.name}.damaged")
        tighten(place)
        with open(place, "ab", opener=open_private) as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return place

    def remove(self) -> None:
        """Its batches are all in the store."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the lock."""
        _OURS.discard(self.path)
        self._file.close()


def parse(line: bytes) -> Batch:
    """The batch of a line.

    Raises:
        DamagedLine: it is none.
    """
    try:
        writer, number, entries = json.loads(line)
        whole = isinstance(writer, str) and type(number) is int and isinstance(entries, list)
    except (ValueError, TypeError, RecursionError):
        whole = False
    if not whole or not all(is_entry(entry) for entry in entries):
        raise DamagedLine
    return Batch(writer, number, entries)


def orphans(address: Address) -> Iterator[SpoolFile]:
    """The spool files of this store that nobody appends to, one at a time."""
    found = [path for place in directories(address) for path in place.glob(f"{address.mark}-*.jsonl")]
    # A writer's second file comes after its first: in the second directory, or `ID.late.jsonl` after `ID.jsonl`.
    for path in sorted(found, key=lambda path: path.name):
        if path not in _OURS:
            with suppress(OSError):
                yield SpoolFile(path, "r+")
