"""Check the triggers that protect the audit: all of them must be there, unchanged, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stoker.tracking.store import migrations
from stoker.tracking.store.queries import Reader

_POSTGRESQL = "audit_no_change"
# The trigger is enabled for every session, not only for replication.
_ENABLED = ("O", "A")
# pg_trigger's bits for BEFORE, DELETE, UPDATE and TRUNCATE, for each statement.
_WHEN = 2 + 8 + 16 + 32


def find_problems(reader: Reader) -> Iterator[str]:
    """Yield what is wrong with the triggers, one sentence each."""
    is_sqlite = reader.dialect == migrations.SQLITE
    yield from _check_sqlite(reader) if is_sqlite else _check_postgresql(reader)


def _check_sqlite(reader: Reader) -> Iterator[str]:
    found = {
        name: _fold_white_space(text)
        for name, text in reader.select("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    }
    made = {
        match[1]: _fold_white_space(statement)
        for statement in migrations.split_statements(_read_scripts(migrations.SQLITE))
        if (match := re.match(r"\s*CREATE TRIGGER (\w+)", statement))
    }
    yield from _compare(found, made)


def _check_postgresql(reader: Reader) -> Iterator[str]:
    rows = reader.select(
        "SELECT t.tgname, t.tgenabled, t.tgtype, p.proname, p.prosrc FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid)"
    )
    source = re.search(r"AS \$\$\n(.*?) \$\$;", _read_scripts(migrations.POSTGRESQL), re.DOTALL)
    assert source is not None
    found = {
        str(row[0]): " ".join(str(part) for part in row[2:4]) + _fold_white_space(str(row[4])) for row in rows
    }
    yield from _compare(found, {_POSTGRESQL: f"{_WHEN} audit_is_append_only{_fold_white_space(source[1])}"})
    for name, enabled, *_ in rows:
        if _to_text(enabled) not in _ENABLED:
            yield f"audit: the trigger {name} is switched off"


def _compare(found: dict[str, str], made: dict[str, str]) -> Iterator[str]:
    for name in sorted(made.keys() - found.keys()):
        yield f"audit: the trigger {name} is missing: rows can be changed"
    for name in sorted(found.keys() - made.keys()):
        yield f"store: the trigger {name} is not Stoker's"
    for name in sorted(made.keys() & found.keys()):
        if found[name] != made[name]:
            yield f"audit: the trigger {name} was changed"


def _read_scripts(dialect: str) -> str:
    return "\n".join(migrations.read_script(version, dialect) for version in migrations.list_versions())


def _to_text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _fold_white_space(text: str) -> str:
    """Return the text with each stretch of white space as one space."""
    return " ".join(text.split()).rstrip("; ")
