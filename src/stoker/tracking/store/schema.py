"""The tables, for SQLAlchemy Core. `migrations` makes them; a test compares the two.

A value that is not a number is NULL in `points.value`, `series.last` (with `count` > 0), because SQLite cannot hold
it; infinities are infinities. Times are seconds since 1970. Columns that hold JSON are text: both databases can look
inside.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text, UniqueConstraint

METADATA = MetaData()
# SQLite counts rows by itself only in a column of exactly this type.
_COUNTED = BigInteger().with_variant(Integer, "sqlite")

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # train, evaluate, predict, run, watch, track, import, export, serve ...
    Column("kind", Text, nullable=False),
    Column("program", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("git_commit", Text),
    Column("git_diff", Text),
    Column("versions", Text, nullable=False),
    Column("machine", Text, nullable=False),
    # running, finished, failed, interrupted; one that is running but was not seen for long was killed.
    Column("state", Text, nullable=False),
    Column("error", Text),
    Column("exit_code", Integer),
    Column("parent", Text),
    Column("worker", Integer),
    Column("started", Double, nullable=False),
    Column("ended", Double),
    Column("seen", Double),
    Column("steps", BigInteger),
    Column("wall_s", Double),
    Column("steps_per_s", Double),
    Column("examples_per_s", Double),
    # The audit's row that tells of its beginning.
    Column("audit_seq", BigInteger),
    Index("runs_by_start", "started"),
    Index("runs_by_parent", "parent"),
)

SERIES = Table(
    "series",
    METADATA,
    Column("id", _COUNTED, primary_key=True, autoincrement=True),
    Column("run", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("last", Double),
    Column("last_step", BigInteger),
    Column("min", Double),
    Column("max", Double),
    UniqueConstraint("run", "name", name="series_of_run"),
)

POINTS = Table(
    "points",
    METADATA,
    Column("series", BigInteger, primary_key=True, autoincrement=False),
    # The number of the point in its series, in the order of logging.
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("step", BigInteger, nullable=False),
    Column("time", Double, nullable=False),
    Column("value", Double),
    sqlite_with_rowid=False,
)

LEDGER = Table(
    "ledger",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("seconds", Double, nullable=False),
)

FINDINGS = Table(
    "findings",
    METADATA,
    Column("run", Text, primary_key=True),
    # Their order in the record: costliest first.
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("line", Integer, nullable=False),
    Column("seconds", Double),
    Column("lost_s", Double),
    Column("speedup", Double),
    # The whole finding, as the record has it.
    Column("finding", Text, nullable=False),
    Index("findings_by_line", "file", "line"),
)

ARTIFACTS = Table(
    "artifacts",
    METADATA,
    Column("id", _COUNTED, primary_key=True, autoincrement=True),
    Column("hash", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger),
    # Where it is: an absolute path, or empty for what was only in memory.
    Column("path", Text, nullable=False),
    Column("time", Double, nullable=False),
    UniqueConstraint("hash", "kind", "path", name="artifact_once"),
)

LINKS = Table(
    "links",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("artifact", BigInteger, primary_key=True, autoincrement=False),
    # uses, makes
    Column("relation", Text, primary_key=True),
    Index("links_by_artifact", "artifact"),
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("time", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("run", Text),
    Column("details", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

# The last batch of each writer: a batch that is delivered again is not applied again.
WRITERS = Table(
    "writers",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("batch", BigInteger, nullable=False),
    Column("time", Double, nullable=False),
)
