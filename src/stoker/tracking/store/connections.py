"""The two drivers behind one small interface, for appending: `?` marks parameters in both, a block is a transaction.

with connection.transaction():
    connection.execute("UPDATE runs SET state = ? WHERE id = ?", ("failed", run))

What a driver raises becomes `Trouble`: the store is locked, full, read-only, gone or slow, and may be back later.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from stoker.errors import StokerError, UsageError
from stoker.files import make_private_directory, open_private, tighten

Row = tuple[Any, ...]
# How long a transaction waits for another process's. Longer, and the spool takes what there is to write.
PATIENCE_S = 5.0
# Serializes making, migrating and auditing among processes on PostgreSQL: any number that is ours.
LOCK = 0x53746F6B
_CONNECT_S = 5
# What a driver says of the data, and not of the database: a constraint, a number of more than 64 bits.
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)
# Held while a database is made and opened.
_opening = threading.Lock()
_SIDE_FILES = ("-wal", "-shm", "-journal")


class Trouble(StokerError):
    """The store cannot be used now: one line that says why."""


class Refused(Trouble):
    """The store works, and does not take this: the same data will be refused again."""


class Connection(Protocol):
    """One connection, used by one thread at a time."""

    dialect: str

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run a statement; its rows, if it has any."""

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of the rows."""

    def append_points(self, rows: Sequence[Row]) -> None:
        """Add rows (series, n, step, time, value) to `points`, the quickest way there is."""

    def transaction(self) -> Any:
        """A block that is committed, or undone if it raises."""

    def lock(self) -> None:
        """In a transaction: no other process makes, migrates or audits until it ends."""

    def is_current(self) -> bool:
        """Whether it leads to the store that is at its address now."""

    def close(self) -> None:
        """Let it go."""


class SQLite:
    """A database file, in WAL mode, each commit on the disk before it returns."""

    dialect = "sqlite"

    def __init__(self, path: Path, patience_s: float = PATIENCE_S) -> None:
        self._path = path
        with _sqlite_trouble(path):
            with _opening:
                _make_private(path)
                self._connection = sqlite3.connect(
                    path, timeout=patience_s, isolation_level=None, check_same_thread=False
                )
            try:
                _write_ahead(self._connection, patience_s)
                self._connection.execute("PRAGMA synchronous=FULL")
            except sqlite3.Error:
                self._connection.close()
                raise
            self._file = _identity(path)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with _sqlite_trouble(self._path):
            return self._connection.execute(statement, parameters).fetchall()

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with _sqlite_trouble(self._path):
            self._connection.executemany(statement, rows)

    def append_points(self, rows: Sequence[Row]) -> None:
        self.many("INSERT INTO points (series, n, step, time, value) VALUES (?, ?, ?, ?, ?)", rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise

    def lock(self) -> None:
        """A transaction is alone in the file already."""

    def is_current(self) -> bool:
        return self._file is not None and _identity(self._path) == self._file

    def close(self) -> None:
        self._connection.close()


class PostgreSQL:
    """A connection by psycopg."""

    dialect = "postgresql"

    def __init__(self, url: str, shown: str, patience_s: float = PATIENCE_S) -> None:
        try:
            import psycopg
        except ImportError:
            raise UsageError("a store in PostgreSQL needs psycopg: pip install 'stoker[postgres]'") from None
        self._errors = psycopg.Error
        self._refusals = (psycopg.IntegrityError, psycopg.DataError)
        self._shown = shown
        milliseconds = int(patience_s * 1000)
        with self._trouble():
            self._connection = psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=_CONNECT_S,
                options=f"-c statement_timeout={4 * milliseconds} -c lock_timeout={milliseconds}",
                tcp_user_timeout=4 * milliseconds,
                application_name="stoker",
            )

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            if isinstance(error, self._refusals) or _is_unadaptable(error):
                problem = f"the store {self._shown} refuses what it was given ({_first_line(error)})"
                raise Refused(problem) from error
            raise Trouble(f"the store {self._shown} cannot be used ({_first_line(error)})") from error

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._trouble():
            cursor = self._connection.execute(
                _percent(statement) if parameters else statement, parameters or None
            )
            return cursor.fetchall() if cursor.description else []

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._trouble(), self._connection.cursor() as cursor:
            cursor.executemany(_percent(statement), rows)

    def append_points(self, rows: Sequence[Row]) -> None:
        statement = "COPY points (series, n, step, time, value) FROM STDIN"
        with self._trouble(), self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._trouble(), self._connection.transaction():
            yield

    def lock(self) -> None:
        self.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))

    def is_current(self) -> bool:
        return not self._connection.closed and not self._connection.broken

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _sqlite_trouble(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError) as error:
        if isinstance(error, _REFUSALS) or "binding parameter" in str(error):
            problem = f"the store sqlite:///{path} refuses what it was given ({_first_line(error)})"
            raise Refused(problem) from error
        raise Trouble(f"the store sqlite:///{path} cannot be used ({_first_line(error)})") from error


def _make_private(path: Path) -> None:
    """Make the file, if it is missing, and close it and what SQLite keeps beside it to everybody but its owner."""
    make_private_directory(path.parent)
    with suppress(OSError):
        # Only a file that nobody has open: closing a database that this process uses would drop SQLite's locks on it.
        # A directory that cannot be written is SQLite's to complain about.
        os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    beside = [path, *(path.with_name(f"{path.name}{end}") for end in _SIDE_FILES)]
    # SQLite gives files that it makes from now on the permissions of the database.
    if sum(tighten(one) for one in beside):
        sys.stderr.write(f"stoker: {path} could be read by other users; now only its owner can (mode 0600)\n")


def _write_ahead(connection: sqlite3.Connection, patience_s: float) -> None:
    """Switch to WAL. SQLite does not wait for others by itself while it does that."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is: another one may have taken its place."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_unadaptable(error: BaseException) -> bool:
    """Whether psycopg, and not the server, says that it does not know how to send a value."""
    return getattr(error, "sqlstate", None) is None and "cannot adapt" in str(error)


def _percent(statement: str) -> str:
    return statement.replace("?", "%s")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
