"""The rows of the store's tables: a dataclass for each, whose fields are the table's columns, in order.

`migrations` makes the tables, and a test compares the two. To add a column to `runs`, add a field to `RunRow` and a
migration. SQL elsewhere takes its column names from here.

SQLite cannot hold NaN, so a NaN is NULL in `points.value`, and in `series.last` where `count` > 0. Infinities are
stored as such. Times are seconds since 1970. Columns that hold JSON are text, which both databases can query.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

# The column is part of the digest that seals a run in the audit. Seals are never recomputed, so no new column may be
# sealed.
_SEALED = {"sealed": True}
# Lists leave the column out, where it is None, because it may be large.
_UNLISTED = {"unlisted": True}


@dataclass(slots=True)
class SeriesRow:
    """A run's series of values, without its points. (The table also has `id` and `run`.)"""

    name: str
    count: int
    last: float
    last_step: int
    min: float | None
    max: float | None


@dataclass(slots=True)
class RunRow:
    """A run, with its series by name."""

    id: str
    name: str = field(metadata=_SEALED)
    # train, evaluate, predict, run, watch, track, import, export, serve ...
    kind: str = field(metadata=_SEALED)
    program: str = field(metadata=_SEALED)
    arguments: list[str] = field(metadata=_SEALED)
    parameters: dict[str, Any] = field(metadata=_SEALED)
    git_commit: str | None = field(metadata=_SEALED)
    git_diff: str | None = field(metadata=_SEALED | _UNLISTED)
    versions: dict[str, object] = field(metadata=_SEALED)
    machine: dict[str, object] = field(metadata=_SEALED)
    # running, finished, failed, interrupted; a reader turns "running" into "lost" if the run must have been killed.
    state: str = field(metadata=_SEALED)
    error: str | None = field(metadata=_SEALED)
    exit_code: int | None = field(metadata=_SEALED)
    # The run that contains this one.
    parent: str | None = field(metadata=_SEALED)
    worker: int | None = field(metadata=_SEALED)
    started: float = field(metadata=_SEALED)
    ended: float | None = field(metadata=_SEALED)
    # When the run was last heard of.
    seen: float | None
    steps: int | None = field(metadata=_SEALED)
    wall_s: float | None = field(metadata=_SEALED)
    steps_per_s: float | None = field(metadata=_SEALED)
    examples_per_s: float | None = field(metadata=_SEALED)
    # The audit's row about the run's start.
    audit_seq: int | None
    series: dict[str, SeriesRow] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """The program's wall time if it was measured; else the time from the run's start to its end, or to now.

        After a measured program has ended, Stoker times its repairs; that time is not the program's.
        """
        if self.wall_s is not None:
            return self.wall_s
        end = self.ended or self.seen
        return None if end is None else max(0.0, float(end) - float(self.started))

    def to_dict(self) -> dict[str, object]:
        """Return everything about the run, as plain values."""
        return {**asdict(self), "seconds": self.seconds}


_COLUMNS = [one for one in fields(RunRow) if one.name != "series"]
RUN_COLUMNS = tuple(one.name for one in _COLUMNS)
# The columns that events may set: the id comes with each event, and `audit_seq` from the audit.
WRITTEN_COLUMNS = tuple(name for name in RUN_COLUMNS if name not in ("id", "audit_seq"))
LISTED_COLUMNS = tuple(one.name for one in _COLUMNS if "unlisted" not in one.metadata)
SEALED_COLUMNS = tuple(one.name for one in _COLUMNS if "sealed" in one.metadata)
JSON_COLUMNS = tuple(one.name for one in _COLUMNS if str(one.type).startswith(("list", "dict")))
NUMBER_COLUMNS = tuple(one.name for one in _COLUMNS if str(one.type).startswith(("int", "float")))
SERIES_COLUMNS = tuple(one.name for one in fields(SeriesRow))


@dataclass(frozen=True, slots=True)
class ArtifactLink:
    """A row of `artifacts`, with the run that uses or makes it (from `links`)."""

    id: int
    # The hash of the content; see `fingerprints`.
    hash: str
    kind: str
    name: str
    size: int | None
    # An absolute path; empty if the artifact was only in memory.
    path: str
    time: float
    run: str
    # uses, makes
    relation: str


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of `audit`."""

    seq: int
    time: float
    actor: str
    event: str
    run: str | None
    # JSON.
    details: str
    previous: str
    hash: str


AUDIT_COLUMNS = tuple(one.name for one in fields(AuditRow))
