"""The history of the store's tables: SQL scripts in order, one `NNNN.sql` per version.

A script `NNNN.DIALECT.sql` holds statements for only one of the databases, and runs after `NNNN.sql`. `$double`,
`$counted` and `$without_rowid` stand for what the databases spell differently. A fresh store runs all scripts, and an
older one runs those it lacks. A released script never changes. A store's version is in `alembic_version`, where the
first versions of Stoker looked for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib import resources
from string import Template

SQLITE, POSTGRESQL = "sqlite", "postgresql"
_SPELLINGS = {
    SQLITE: {"double": "DOUBLE", "counted": "INTEGER", "without_rowid": " WITHOUT ROWID"},
    POSTGRESQL: {"double": "DOUBLE PRECISION", "counted": "BIGSERIAL", "without_rowid": ""},
}
_SCRIPTS = resources.files(__name__)


@cache
def list_versions() -> tuple[str, ...]:
    """List all versions of the tables, oldest first."""
    names = (one.name for one in _SCRIPTS.iterdir())
    return tuple(sorted({name.partition(".")[0] for name in names if name.endswith(".sql")}))


@cache
def read_script(version: str, dialect: str) -> str:
    """Read the statements that lead to a version from the one before."""
    script = Template(_SCRIPTS.joinpath(f"{version}.sql").read_text(encoding="utf-8"))
    own = _SCRIPTS.joinpath(f"{version}.{dialect}.sql")
    return script.substitute(_SPELLINGS[dialect]) + (own.read_text(encoding="utf-8") if own.is_file() else "")


def split_statements(script: str) -> Iterator[str]:
    """Split a script for SQLite into its statements, including triggers."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
