"""The two database drivers behind one small interface; all SQL of the store goes through it.

    with connection.transaction():
        connection.execute("UPDATE runs SET state = ? WHERE id = ?", ("failed", run))

`?` marks parameters in both dialects. What a driver raises becomes a `StoreError`: the store is locked, full,
read-only, gone or slow, and may be back later.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from stoker.errors import StokerError, UsageError, first_line
from stoker.files import make_private_directory, open_private, tighten
from stoker.logs import LOGGER

Row: TypeAlias = tuple[Any, ...]
# How long a transaction waits for another process's transaction. After that, the data goes to the spool.
PATIENCE_S = 5.0
# The advisory lock under which processes migrate and audit a PostgreSQL store; any number that nobody else uses.
_LOCK = 0x53746F6B
_CONNECT_S = 5
# Errors about the data, not the database: a constraint, or a number of more than 64 bits.
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)
# Held while a database file is created and opened.
_opening = threading.Lock()
_SIDE_FILES = ("-wal", "-shm", "-journal")


class StoreError(StokerError):
    """The store cannot be used now; the message is one line that says why."""


class StoreRefusedError(StoreError):
    """The store works but rejects this data, and would reject it again."""


class Connection(Protocol):
    """One connection, used by one thread at a time."""

    dialect: str

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run a statement and return its rows, if it has any."""

    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of parameters."""

    def append_points(self, rows: Sequence[Row]) -> None:
        """Add rows (series, n, step, time, value) to `points` in the fastest way that the database has."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run a block that is committed, or undone if it raises."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Run a block that only reads, and sees the store as it was at one moment."""

    def lock(self) -> None:
        """Keep other processes from migrating or auditing until this transaction ends."""

    def is_current(self) -> bool:
        """Return whether the connection still leads to the store at its address."""

    def close(self) -> None:
        """Close the connection."""


class SQLite:
    """A database file in WAL mode; every commit is on the disk before it returns."""

    dialect = "sqlite"

    def __init__(self, path: Path, patience_s: float = PATIENCE_S) -> None:
        self._path = path
        with self._translate_errors():
            with _opening:
                _make_private(path)
                self._connection = sqlite3.connect(
                    path, timeout=patience_s, isolation_level=None, check_same_thread=False
                )
            try:
                _switch_to_wal(self._connection, patience_s)
                self._connection.execute("PRAGMA synchronous=FULL")
            except sqlite3.Error:
                self._connection.close()
                raise
            self._file = _identify(path)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, OverflowError) as error:
            is_refusal = isinstance(error, _REFUSALS) or "binding parameter" in str(error)
            raise _store_error(f"sqlite:///{self._path}", error, is_refusal) from error

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self._translate_errors():
            return self._connection.execute(statement, parameters).fetchall()

    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._translate_errors():
            self._connection.executemany(statement, rows)

    def append_points(self, rows: Sequence[Row]) -> None:
        self.execute_many("INSERT INTO points (series, n, step, time, value) VALUES (?, ?, ?, ?, ?)", rows)

    @contextmanager
    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        self.execute(begin)
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise

    def snapshot(self) -> AbstractContextManager[None]:
        return self.transaction("BEGIN")

    def lock(self) -> None:
        """Do nothing, as a transaction has the file to itself."""

    def is_current(self) -> bool:
        return self._file is not None and _identify(self._path) == self._file

    def close(self) -> None:
        self._connection.close()


class PostgreSQL:
    """A connection by psycopg; `shown` is the URL without its password."""

    dialect = "postgresql"

    def __init__(self, url: str, shown: str, patience_s: float = PATIENCE_S) -> None:
        try:
            import psycopg
        except ImportError:
            raise UsageError("a store in PostgreSQL needs psycopg: pip install 'stoker[postgres]'") from None
        self._driver = psycopg
        self._shown = shown
        milliseconds = int(patience_s * 1000)
        with self._translate_errors():
            self._connection = psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=_CONNECT_S,
                options=f"-c statement_timeout={4 * milliseconds} -c lock_timeout={milliseconds}",
                tcp_user_timeout=4 * milliseconds,
                application_name="stoker",
            )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            is_refusal = isinstance(error, self._driver.IntegrityError | self._driver.DataError)
            raise _store_error(self._shown, error, is_refusal or _is_unadaptable(error)) from error

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self._translate_errors():
            # Without parameters, psycopg takes "%" and several statements unchanged.
            query = _mark_parameters(statement) if parameters else statement.encode()
            cursor = self._connection.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._translate_errors(), self._connection.cursor() as cursor:
            cursor.executemany(_mark_parameters(statement), rows)

    def append_points(self, rows: Sequence[Row]) -> None:
        statement = "COPY points (series, n, step, time, value) FROM STDIN"
        with self._translate_errors(), self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._translate_errors(), self._connection.transaction():
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self.transaction():
            # Reading may take as long as it needs: only writers have something better to do meanwhile.
            self.execute(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0"
            )
            yield

    def lock(self) -> None:
        self.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))

    def is_current(self) -> bool:
        return not self._connection.closed and not self._connection.broken

    def close(self) -> None:
        self._connection.close()


def _store_error(shown: str, error: Exception, is_refusal: bool) -> StoreError:
    reason = first_line(error)
    if is_refusal:
        return StoreRefusedError(f"the store {shown} rejects what it was given ({reason})")
    return StoreError(f"the store {shown} cannot be used ({reason})")


def _make_private(path: Path) -> None:
    """Create the file if it is missing. Let nobody but the owner open it or SQLite's files beside it."""
    make_private_directory(path.parent)
    with suppress(OSError):
        # Only a new file is opened here: closing one that this process has open as a database would drop SQLite's locks
        # on it. If the directory is not writable, SQLite itself says so.
        os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    files = [path, *(path.with_name(f"{path.name}{end}") for end in _SIDE_FILES)]
    # SQLite gives new files beside the database the same permissions as the database.
    if sum(tighten(file) for file in files):
        LOGGER.warning("%s could be read by other users; now only its owner can (mode 0600)", path)


def _switch_to_wal(connection: sqlite3.Connection, patience_s: float) -> None:
    """Switch to WAL mode. SQLite's own timeout does not apply to this, so wait for other processes here."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _identify(path: Path) -> tuple[int, int] | None:
    """Return which file is at a path, as another one may have replaced it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_unadaptable(error: BaseException) -> bool:
    """Return whether psycopg itself, rather than the server, does not know how to send a value."""
    return getattr(error, "sqlstate", None) is None and "cannot adapt" in str(error)


def _mark_parameters(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
