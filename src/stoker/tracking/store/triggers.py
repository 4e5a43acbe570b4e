"""The triggers that keep the audit as it was written: whether they are all there, as they were made, and no others."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from importlib import resources

from stoker.tracking.store.queries import Reader

_POSTGRESQL = "audit_no_change"
# Enabled for every session, and not only for a replica's.
_ENABLED = ("O", "A")
# BEFORE, for each statement, on DELETE, UPDATE and TRUNCATE, as pg_trigger has it.
_WHEN = 2 + 8 + 16 + 32


def missing(reader: Reader) -> Iterator[str]:
    """What is wrong with them, a sentence each."""
    yield from _of_postgresql(reader) if reader.dialect == "postgresql" else _of_sqlite(reader)


def _of_sqlite(reader: Reader) -> Iterator[str]:
    found = {
        name: _plain(text)
        for name, text in reader.select("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'", ())
    }
    made = {
        match[1]: _plain(text)
        for text in _statements()
        if (match := re.match(r"\s*CREATE TRIGGER (\w+)", text))
    }
    yield from _compare(found, made)


def _of_postgresql(reader: Reader) -> Iterator[str]:
    rows = reader.select(
        "SELECT t.tgname, t.tgenabled, t.tgtype, p.proname, p.prosrc FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid)",
        (),
    )
    source = re.search(r"AS \$\$\n(.*?) \$\$;", _script("postgresql"), re.DOTALL)
    assert source is not None
    found = {str(row[0]): " ".join(str(part) for part in row[2:4]) + _plain(str(row[4])) for row in rows}
    yield from _compare(found, {_POSTGRESQL: f"{_WHEN} audit_is_append_only{_plain(source[1])}"})
    for name, enabled, *_ in rows:
        if _text(enabled) not in _ENABLED:
            yield f"audit: the trigger {name} is switched off"


def _compare(found: dict[str, str], made: dict[str, str]) -> Iterator[str]:
    for name in sorted(made.keys() - found.keys()):
        yield f"audit: the trigger {name} is missing: rows can be changed"
    for name in sorted(found.keys() - made.keys()):
        yield f"store: the trigger {name} is not Stoker's"
    for name in sorted(made.keys() & found.keys()):
        if found[name] != made[name]:
            yield f"audit: the trigger {name} was changed"


def _statements() -> Iterator[str]:
    """Those that make a fresh store in SQLite."""
    statement = ""
    for line in _script("sqlite").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _script(dialect: str) -> str:
    return (
        resources.files("stoker.tracking.store.fresh").joinpath(f"{dialect}.sql").read_text(encoding="utf-8")
    )


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _plain(text: str) -> str:
    """Without what makes no difference."""
    return " ".join(text.split()).rstrip("; ")
