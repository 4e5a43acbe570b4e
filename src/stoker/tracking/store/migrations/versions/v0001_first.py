"""The first tables, and the triggers that keep the audit as it was written."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_SQLITE_TRIGGERS = (
    """CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END""",
    """CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END""",
)
_POSTGRESQL_TRIGGERS = (
    """CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$""",
    """CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()""",
)


def upgrade() -> None:
    """From nothing."""
    _runs()
    _values()
    _measurements()
    _artifacts()
    _audit()


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("git_commit", sa.Text),
        sa.Column("git_diff", sa.Text),
        sa.Column("versions", sa.Text, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("exit_code", sa.Integer),
        sa.Column("parent", sa.Text),
        sa.Column("worker", sa.Integer),
        sa.Column("started", sa.Double, nullable=False),
        sa.Column("ended", sa.Double),
        sa.Column("seen", sa.Double),
        sa.Column("steps", sa.BigInteger),
        sa.Column("wall_s", sa.Double),
        sa.Column("steps_per_s", sa.Double),
        sa.Column("examples_per_s", sa.Double),
        sa.Column("audit_seq", sa.BigInteger),
    )
    op.create_index("runs_by_start", "runs", ["started"])
    op.create_index("runs_by_parent", "runs", ["parent"])


def _values() -> None:
    op.create_table(
        "series",
        sa.Column("id", _COUNTED, primary_key=True, autoincrement=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("last", sa.Double),
        sa.Column("last_step", sa.BigInteger),
        sa.Column("min", sa.Double),
        sa.Column("max", sa.Double),
        sa.UniqueConstraint("run", "name", name="series_of_run"),
    )
    op.create_table(
        "points",
        sa.Column("series", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("n", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("value", sa.Double),
        sqlite_with_rowid=False,
    )


def _measurements() -> None:
    op.create_table(
        "ledger",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("seconds", sa.Double, nullable=False),
    )
    op.create_table(
        "findings",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("line", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("lost_s", sa.Double),
        sa.Column("speedup", sa.Double),
        sa.Column("finding", sa.Text, nullable=False),
    )
    op.create_index("findings_by_line", "findings", ["file", "line"])


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", _COUNTED, primary_key=True, autoincrement=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.UniqueConstraint("hash", "kind", "path", name="artifact_once"),
    )
    op.create_table(
        "links",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("artifact", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("relation", sa.Text, primary_key=True),
    )
    op.create_index("links_by_artifact", "links", ["artifact"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("run", sa.Text),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_table(
        "writers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
    )
    sqlite = context.get_context().dialect.name == "sqlite"
    for statement in _SQLITE_TRIGGERS if sqlite else _POSTGRESQL_TRIGGERS:
        op.execute(statement)
