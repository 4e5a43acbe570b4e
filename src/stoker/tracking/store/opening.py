"""Open a store: create the tables of a fresh one, add what an older one lacks. Many processes may do so at once."""

from __future__ import annotations

from stoker.errors import UsageError
from stoker.tracking.store import migrations
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import PATIENCE_S, Connection, PostgreSQL, SQLite

# A store without a version table has no tables at all.
_HAS_VERSION = {
    migrations.SQLITE: "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'",
    # `to_regclass` would answer from a cache, which sees another process's tables only in a new transaction.
    migrations.POSTGRESQL: (
        "SELECT 1 FROM pg_class WHERE relname = 'alembic_version' AND pg_table_is_visible(oid)"
    ),
}


def connect(address: Address, patience_s: float = PATIENCE_S) -> Connection:
    """Connect to a store, and bring its tables up to date.

    Raises:
        StoreError: the store cannot be opened now.
        UsageError: a newer Stoker made the store, or its driver is missing.
    """
    connection: Connection
    if address.path is not None:
        connection = SQLite(address.path, patience_s)
    else:
        connection = PostgreSQL(address.url, str(address), patience_s)
    try:
        _migrate(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: Connection, address: Address) -> None:
    versions = migrations.list_versions()
    if _read_version(connection) == versions[-1]:
        return
    with connection.transaction():
        connection.lock()
        # Another process may have migrated the store meanwhile.
        found = _read_version(connection)
        if found is not None and found not in versions:
            raise UsageError(
                f"the store {address} has version {found}, this Stoker knows up to {versions[-1]}: update Stoker"
            )
        for version in versions:
            if found is None or version > found:
                _run_script(connection, version)


def _read_version(connection: Connection) -> str | None:
    if not connection.execute(_HAS_VERSION[connection.dialect]):
        return None
    rows = connection.execute("SELECT version_num FROM alembic_version")
    return str(rows[0][0]) if rows else None


def _run_script(connection: Connection, version: str) -> None:
    script = migrations.read_script(version, connection.dialect)
    # SQLite's driver commits before it runs a script of several statements; run one by one, they stay in the
    # transaction.
    split = migrations.split_statements(script) if connection.dialect == migrations.SQLITE else [script]
    for statement in split:
        connection.execute(statement)
    connection.execute("DELETE FROM alembic_version")
    connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (version,))
