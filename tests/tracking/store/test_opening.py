"""A store is made once, whoever comes first, and has the tables the code knows."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from stoker.errors import UsageError
from stoker.tracking.store import opening
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Trouble
from stoker.tracking.store.schema import METADATA


def shape(store: Address) -> dict[str, object]:
    """The tables, columns and indexes a store has."""
    with opening.engine(store).connect() as connection:
        seen = sa.inspect(connection)
        return {
            name: (
                [(c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns(name)],
                seen.get_pk_constraint(name)["constrained_columns"],
                sorted(str(index["column_names"]) for index in seen.get_indexes(name)),
            )
            for name in seen.get_table_names()
        }


def test_a_fresh_store_is_what_the_migrations_make(store: Address) -> None:
    opening.connect(store).close()
    made = shape(store)
    with opening.engine(store, writes=True).begin() as connection:
        METADATA.drop_all(connection)
        connection.exec_driver_sql("DROP TABLE alembic_version")
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("DROP FUNCTION audit_is_append_only")
    opening.migrate(store, None)
    assert shape(store) == made
    with opening.engine(store).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    opening.connect(store).close()


def test_the_audit_can_only_be_added_to(store: Address) -> None:
    connection = opening.connect(store)
    row = (1, 0.0, "me", "event", None, "{}", "0", "1")
    connection.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    statements = ["UPDATE audit SET event = 'x'", "DELETE FROM audit"]
    if connection.dialect == "postgresql":
        statements.append("TRUNCATE audit")
    for statement in statements:
        with pytest.raises(Trouble, match="append-only"):
            connection.execute(statement)
    assert connection.execute("SELECT * FROM audit") == [row]


def test_a_newer_store_is_refused_in_one_line(store: Address) -> None:
    connection = opening.connect(store)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(UsageError, match=r"version 9999.*update Stoker"):
        opening.connect(store)
