"""Opening a store: a fresh one is made, an older one migrated, under a lock: many processes may do it at once."""

from __future__ import annotations

import sqlite3
from importlib import resources
from typing import Any

from stoker.errors import UsageError
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import LOCK, PATIENCE_S, Connection, PostgreSQL, SQLite

# The newest migration.
HEAD = "0001"
# The first statement of a store's life: as long as it is missing, there is none.
_VERSION = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'",
    # Not `to_regclass`: that answers from a cache, which another process's tables enter only with a new transaction.
    "postgresql": "SELECT 1 FROM pg_class WHERE relname = 'alembic_version' AND pg_table_is_visible(oid)",
}


def connect(address: Address, patience_s: float = PATIENCE_S) -> Connection:
    """A connection for appending, to a store with today's tables.

    Raises:
        Trouble: it cannot be opened now.
        UsageError: it is a newer Stoker's, or its driver is missing.
    """
    connection: Connection
    if address.path is not None:
        connection = SQLite(address.path, patience_s)
    else:
        connection = PostgreSQL(address.url, str(address), patience_s)
    try:
        _prepare(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Connection, address: Address) -> None:
    if _version(connection) == HEAD:
        return
    with connection.transaction():
        connection.lock()
        found = _version(connection)
        if found is None:
            _make(connection)
            return
    if found != HEAD:
        migrate(address, found)


def _version(connection: Connection) -> str | None:
    if not connection.execute(_VERSION[connection.dialect]):
        return None
    rows = connection.execute("SELECT version_num FROM alembic_version")
    return str(rows[0][0]) if rows else None


def _make(connection: Connection) -> None:
    script = resources.files("stoker.tracking.store.fresh").joinpath(f"{connection.dialect}.sql")
    text = script.read_text(encoding="utf-8")
    if connection.dialect == "postgresql":
        connection.execute(text)
        return
    # SQLite's driver commits before a script of many: one by one, they are in the transaction.
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def migrate(address: Address, found: str | None) -> None:
    """Bring an older store, or with None an empty one, to today's tables, with Alembic.

    Raises:
        UsageError: it is a newer Stoker's.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    settings = Config()
    settings.set_main_option("script_location", "stoker.tracking.store:migrations")
    known = {script.revision for script in ScriptDirectory.from_config(settings).walk_revisions()}
    if found is not None and found not in known:
        raise UsageError(
            f"the store {address} has version {found}, this Stoker knows up to {HEAD}: update Stoker"
        )
    with engine(address, writes=True).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        settings.attributes["connection"] = connection
        command.upgrade(settings, "head")


def engine(address: Address, *, writes: bool = False) -> Any:
    """SQLAlchemy's engine on a store, for reading and migrating; on SQLite a transaction that `writes` begins alone."""
    import sqlalchemy as sa

    if address.path is None:
        return sa.create_engine(
            address.url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=sa.NullPool
        )
    made = sa.create_engine(f"sqlite:///{address.path}", poolclass=sa.NullPool)

    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    sa.event.listen(made, "connect", connected)
    sa.event.listen(made, "begin", begun)
    return made
