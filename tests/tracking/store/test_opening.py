"""A store is made once, whoever comes first, and has the tables the code knows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.errors import UsageError
from stoker.tracking.store import migrations, opening, queries, schema
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Connection, StoreError
from stoker.tracking.store.events import ArtifactColumns


def columns_of(connection: Connection, table: str) -> dict[str, tuple[str, bool]]:
    """The columns of a table in order, each with its type and whether it may be NULL."""
    if connection.dialect == "sqlite":
        rows = connection.execute(f"SELECT name, type, NOT \"notnull\" FROM pragma_table_info('{table}')")
    else:
        rows = connection.execute(
            "SELECT column_name, upper(data_type), is_nullable = 'YES' FROM information_schema.columns "
            "WHERE table_name = ? ORDER BY ordinal_position",
            (table,),
        )
    return {name: (kind, bool(nullable)) for name, kind, nullable in rows}


def test_the_tables_have_the_columns_the_code_knows(store: Address) -> None:
    connection = opening.connect(store)
    assert tuple(columns_of(connection, "runs")) == schema.RUN_COLUMNS
    assert tuple(columns_of(connection, "series")) == ("id", "run", *schema.SERIES_COLUMNS)
    assert tuple(columns_of(connection, "audit")) == schema.AUDIT_COLUMNS
    assert tuple(columns_of(connection, "artifacts")) == ("id", *ArtifactColumns.__annotations__)
    types = {field.name: str(field.type) for field in schema.RunRow.__dataclass_fields__.values()}
    sql = {"str": "TEXT", "list": "TEXT", "dict": "TEXT", "int": "INTEGER BIGINT"}
    for name, (kind, nullable) in columns_of(connection, "runs").items():
        python = types[name].partition("[")[0].partition(" ")[0]
        assert kind in sql.get(python, "DOUBLE PRECISION"), name
        assert nullable == types[name].endswith("| None"), name
    connection.close()


@pytest.fixture
def newer_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The scripts of a Stoker that has one more: `0002.sql`, still to be written."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for script in Path(migrations.__file__).parent.glob("*.sql"):
        shutil.copy(script, scripts)
    (scripts / "0002.sql").touch()
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "_SCRIPTS", scripts)
        for cached in (migrations.list_versions, migrations.read_script):
            cached.cache_clear()
        yield scripts
    for cached in (migrations.list_versions, migrations.read_script):
        cached.cache_clear()


def test_an_older_store_is_migrated_and_keeps_its_runs(
    store: Address, newer_scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (newer_scripts / "0002.sql").rename(newer_scripts / "hidden")
    older = opening.connect(store)
    older.execute("INSERT INTO ledger VALUES ('r', 'sync', 1.5)")
    older.close()
    (newer_scripts / "0002.sql").write_text(
        "ALTER TABLE runs ADD COLUMN note TEXT;\nCREATE TABLE more (a TEXT);\n"
    )
    migrations.list_versions.cache_clear()
    for _ in range(2):
        connection = opening.connect(store)
        assert connection.execute("SELECT version_num FROM alembic_version") == [("0002",)]
        assert list(columns_of(connection, "runs"))[-1] == "note"
        connection.close()
    with queries.open_reader(store) as reader:
        assert reader.ledger("r") == {"sync": 1.5}


def test_a_migration_that_fails_leaves_the_store_as_it_was(store: Address, newer_scripts: Path) -> None:
    (newer_scripts / "0002.sql").write_text("CREATE TABLE more (a TEXT);\nCREATE TABLE runs (a TEXT);\n")
    with pytest.raises(StoreError, match="already exists"):
        opening.connect(store)
    (newer_scripts / "0002.sql").write_text("CREATE TABLE more (a TEXT);\n")
    migrations.read_script.cache_clear()
    connection = opening.connect(store)
    assert list(columns_of(connection, "more")) == ["a"]
    connection.close()


def test_the_audit_can_only_be_added_to(store: Address) -> None:
    connection = opening.connect(store)
    row = (1, 0.0, "me", "event", None, "{}", "0", "1")
    connection.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    statements = ["UPDATE audit SET event = 'x'", "DELETE FROM audit"]
    if connection.dialect == "postgresql":
        statements.append("TRUNCATE audit")
    for statement in statements:
        with pytest.raises(StoreError, match="append-only"):
            connection.execute(statement)
    assert connection.execute("SELECT * FROM audit") == [row]


def test_a_newer_store_is_refused_in_one_line(store: Address) -> None:
    connection = opening.connect(store)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(UsageError, match=r"version 9999.*update Stoker"):
        opening.connect(store)
