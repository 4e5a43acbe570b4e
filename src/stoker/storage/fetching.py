"""Fetches a copy in parts, many at a time. Each file can be read once it is whole; the copy counts once it is complete.

A fetch never waits for those who read its files, so processes that wait for each other's fetches do not block.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from stoker.storage import room
from stoker.storage.copies import LocalCopy
from stoker.storage.remote import CONNECTIONS, ChangedError, Remote, RemoteFile

# The bytes of a file that one request asks for.
PART_BYTES = 8 << 20
# One fetch at a time: a file lock does not separate the threads of one process.
_turn = threading.Lock()
_queue: deque[Fetch] = deque()
_queue_lock = threading.Lock()
_runner: threading.Thread | None = None


class Fetch:
    """The files of one copy on their way to this machine.

    Args:
        remote: where the files come from.
        copy: the copy to fetch.
        root: the directory of all copies.
        limit: the most bytes that all copies may take.
        plan: returns the copy that is needed now, to notice a change.
    """

    def __init__(
        self, remote: Remote, copy: LocalCopy, root: Path, limit: int, plan: Callable[[], LocalCopy]
    ) -> None:
        self.copy = copy
        self._remote, self._root, self._limit, self._plan = remote, root, limit, plan
        self._news = threading.Condition()
        self._arrived: set[str] = set()
        self._is_over = False
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Fetch in the background, after the fetches begun before; a program that ends does not wait for it."""
        global _runner
        with _queue_lock:
            _queue.append(self)
            if _runner is None or not _runner.is_alive():
                _runner = threading.Thread(target=_run_queue, name="stoker-fetches", daemon=True)
                _runner.start()

    def run(self) -> None:
        """Fetch now. `wait` reports the outcome."""
        with _turn:
            try:
                with room.explain_full_disk(self.copy.url, self._root):
                    self._keep()
            except BaseException as error:
                self._end(error)
                if not isinstance(error, Exception):
                    raise
            else:
                self._end(None)

    def wait_for(self, name: str) -> None:
        """Wait until one of the files is there.

        Raises:
            ChangedError: the files changed meanwhile.
            ArgumentError: the files cannot be fetched.
        """
        with self._news:
            self._news.wait_for(lambda: self._is_over or name in self._arrived)
            if self._error is not None:
                raise self._error

    def wait(self) -> None:
        """Wait until all files are there and known to be of one version.

        Raises:
            ChangedError: the files changed meanwhile.
            ArgumentError: the files cannot be fetched.
        """
        with self._news:
            self._news.wait_for(lambda: self._is_over)
            if self._error is not None:
                raise self._error

    def _end(self, error: BaseException | None) -> None:
        with self._news:
            self._is_over, self._error = True, error
            self._news.notify_all()

    def _keep(self) -> None:
        with room.hold_lock(self._root / "locks" / digest(self._remote.url)):
            if not self.copy.is_complete():
                room.make_room(self._root, self._limit - self.copy.bytes, self.copy)
                self._fetch()
                if self._plan().place != self.copy.place:
                    raise ChangedError(f"{self.copy.url} has changed while it was fetched: read it again")
                self.copy.describe(complete=True)
                room.remove_other_versions(self._root, self.copy)
            os.utime(self.copy.about)

    def _fetch(self) -> None:
        """Fetch all files into the directory of the copy. Files that an older copy already has are linked."""
        place = self.copy.place
        fresh = place.with_name(f"{place.name}.new")
        for leftover in (fresh, place):
            shutil.rmtree(leftover, ignore_errors=True)
        older = self.copy.older_files()
        coming: list[_ComingFile] = []
        for name, file in self.copy.files.items():
            for top in (fresh, place):
                (top / name).parent.mkdir(parents=True, exist_ok=True)
            known = older.get((name, file.version))
            if known is None or not known.is_file():
                coming.append(_ComingFile(file, fresh / name, place / name, partial(self._arrive, name)))
            else:
                os.link(known, place / name)
                self._arrive(name)
        parts = (part for one in coming for part in one.parts(self._remote))
        _call_all(parts, sum(one.count for one in coming))
        shutil.rmtree(fresh, ignore_errors=True)

    def _arrive(self, name: str) -> None:
        with self._news:
            self._arrived.add(name)
            self._news.notify_all()


class _ComingFile:
    """A file that is written in parts under a temporary name, and gets its own name with the last part."""

    def __init__(self, file: RemoteFile, fresh: Path, target: Path, arrive: Callable[[], None]) -> None:
        self._file, self._fresh, self._target, self._arrive = file, fresh, target, arrive
        self.count = self._left = max(1, -(-file.size // PART_BYTES))
        self._lock = threading.Lock()

    def parts(self, remote: Remote) -> Iterator[Callable[[], None]]:
        """Yield one function for each request."""
        self._fresh.touch()
        if self.count == 1:
            yield partial(self._fetch, remote, 0, None)
            return
        for start in range(0, self._file.size, PART_BYTES):
            yield partial(self._fetch, remote, start, min(start + PART_BYTES, self._file.size))

    def _fetch(self, remote: Remote, start: int, end: int | None) -> None:
        data = remote.read(self._file, start, end)
        with self._fresh.open("r+b") as stream:
            stream.seek(start)
            stream.write(data)
        with self._lock:
            self._left -= 1
            if self._left:
                return
        # Every copy of this version gets the same time, so whatever was made from one copy is still up to date after
        # another fetch.
        os.utime(self._fresh, (0, int(digest(self._file.version)[:7], 16)))
        self._fresh.rename(self._target)
        self._arrive()


def digest(*texts: str) -> str:
    """Return a short name for texts that could not be part of a file name."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=10).hexdigest()


def _run_queue() -> None:
    global _runner
    while True:
        with _queue_lock:
            if not _queue:
                _runner = None
                return
            fetch = _queue.popleft()
        fetch.run()


def _call_all(parts: Iterator[Callable[[], None]], count: int) -> None:
    """Call all parts in order, with at most as many threads as there may be requests at a time.

    The threads are daemons. With an executor's threads, a program that ends would wait for all parts.

    Raises:
        BaseException: the error of the first part that failed; no further part is begun after it.
    """
    taking, stopped = threading.Lock(), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not stopped.is_set():
                with taking:
                    part = next(parts, None)
                if part is None:
                    return
                part()
        except BaseException as error:  # noqa: BLE001 - it is raised by the thread that waits
            failures.append(error)
            stopped.set()

    threads = [
        threading.Thread(target=work, name="stoker-fetch", daemon=True)
        for _ in range(min(CONNECTIONS, count))
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stopped.set()
    if failures:
        raise failures[0]
