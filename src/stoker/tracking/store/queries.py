"""Runs read back from the store, with SQLAlchemy Core: lists never touch the points."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import sqlalchemy as sa

from stoker.errors import RecordError
from stoker.tracking.store import opening, schema
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Trouble

# A run that is running says so every ten seconds: after this long it was killed.
LOST_AFTER_S = 60.0
LOST = "lost"
# In one statement: SQLite takes about 32,000 parameters.
_MOST_NAMED = 10_000
_JSON = ("arguments", "parameters", "versions", "machine")
_HEAVY = ("git_diff",)
_NUMBERS = ("started", "ended", "seen", "steps", "wall_s", "steps_per_s", "examples_per_s", "exit_code")


@dataclass(slots=True)
class Series:
    """What a list knows of a series of values."""

    name: str
    count: int
    last: float
    last_step: int
    min: float | None
    max: float | None


@dataclass
class RunRow:
    """A run as lists show it: the columns of its row, read, and its series by name."""

    columns: dict[str, Any]
    series: dict[str, Series] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.columns["id"])

    @property
    def state(self) -> str:
        """As the store has it, `lost` if it must have been killed."""
        state = str(self.columns["state"])
        seen = self.columns["seen"] or self.columns["started"]
        return LOST if state == "running" and time.time() - seen > LOST_AFTER_S else state

    @property
    def seconds(self) -> float | None:
        """From its beginning to its end, or to when it was last seen."""
        end = self.columns["ended"] or self.columns["seen"]
        return None if end is None else max(0.0, float(end) - float(self.columns["started"]))


class Reader:
    """A store that is read, in one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def runs(self, *ids: str) -> list[RunRow]:
        """These runs, or all; newest first."""
        table = schema.RUNS
        columns = [column for column in table.c if column.name not in _HEAVY]
        statement = sa.select(*columns).order_by(table.c.started.desc(), table.c.id.desc())
        of_series = sa.select(
            *(schema.SERIES.c[name] for name in ("run", *(one.name for one in fields(Series))))
        )
        if ids:
            statement = statement.where(table.c.id.in_(ids))
            of_series = of_series.where(schema.SERIES.c.run.in_(ids))
        # Ten thousand runs are a table people look at: the rows are taken as plain tuples, all at once.
        names = [column.name for column in columns]
        loads = cache(_loads)
        found: dict[str, RunRow] = {}
        for row in self._connection.execute(statement).fetchall():
            named = dict(zip(names, row, strict=True))
            for name in _JSON:
                named[name] = loads(named[name], name)
            for name in _NUMBERS:
                # SQLite takes text for a number; one damaged run must not hide the others.
                if isinstance(named[name], str | bytes):
                    named[name] = None
            named["started"] = named["started"] or 0.0
            found[named["id"]] = RunRow(named)
        for run, name, count, last, *rest in self._connection.execute(of_series).fetchall():
            if run in found:
                found[run].series[name] = Series(name, count, _float(last), *rest)
        return list(found.values())

    def resolve(self, run: str | None) -> str:
        """The id of a run by the beginning of it; the newest if None.

        Raises:
            RecordError: there is none, or several.
        """
        table = schema.RUNS
        statement = sa.select(table.c.id).order_by(table.c.started.desc()).limit(50)
        if run is None:
            found = list(self._connection.scalars(statement.limit(1)))
        else:
            found = list(
                self._connection.scalars(statement.where(table.c.id.startswith(run, autoescape=True)))
            )
            if run in found:
                return run
        if len(found) != 1:
            problem = "no run" if not found else f"{len(found)} runs"
            raise RecordError(f"{problem} with id {run!r} in the store: `stoker runs` lists them")
        return str(found[0])

    def column(self, run: str, name: str) -> Any:
        """One column of a run: the ones that lists leave out."""
        table = schema.RUNS
        return self._connection.scalar(sa.select(table.c[name]).where(table.c.id == run))

    def points(self, run: str, name: str) -> list[tuple[int, float, float]]:
        """A series: (step, time, value), in the order of logging."""
        points, series = schema.POINTS, schema.SERIES
        statement = (
            sa.select(points.c.step, points.c.time, points.c.value)
            .join(series, series.c.id == points.c.series)
            .where(series.c.run == run, series.c.name == name)
            .order_by(points.c.n)
        )
        return [(step, at, _float(value)) for step, at, value in self._connection.execute(statement)]

    def thinned(self, run: str, name: str, most: int) -> list[tuple[int, float, float]]:
        """As `points`, thinned in SQL to about `most`, at least 2: of each stretch the lowest and the highest value."""
        most = max(2, most)
        series, points = schema.SERIES, schema.POINTS
        wanted = sa.select(series.c.id, series.c.count).where(series.c.run == run, series.c.name == name)
        found = self._connection.execute(wanted).one_or_none()
        if found is None or found.count <= most:
            return self.points(run, name)
        length = math.ceil(2 * found.count / most)
        stretch = sa.type_coerce(points.c.n.op("/")(length), sa.BigInteger)
        inner = (
            sa.select(
                points.c.n,
                points.c.step,
                points.c.time,
                points.c.value,
                sa.func.row_number().over(partition_by=stretch, order_by=points.c.value).label("low"),
                sa.func.row_number().over(partition_by=stretch, order_by=points.c.value.desc()).label("high"),
            )
            .where(points.c.series == found.id)
            .subquery()
        )
        statement = (
            sa.select(inner.c.step, inner.c.time, inner.c.value)
            .where(sa.or_(inner.c.low == 1, inner.c.high == 1))
            .order_by(inner.c.n)
        )
        return [(step, at, _float(value)) for step, at, value in self._connection.execute(statement)]

    def ledger(self, run: str) -> dict[str, float]:
        """Seconds by account."""
        table = schema.LEDGER
        rows = self._connection.execute(
            sa.select(table.c.account, table.c.seconds)
            .where(table.c.run == run)
            .order_by(table.c.seconds.desc())
        )
        return {str(account): float(seconds) for account, seconds in rows}

    def findings(self, run: str) -> list[dict[str, Any]]:
        """As the record has them, costliest first."""
        table = schema.FINDINGS
        statement = sa.select(table.c.finding).where(table.c.run == run).order_by(table.c.n)
        return [json.loads(text) for text in self._connection.scalars(statement)]

    def first_findings(self) -> dict[str, str]:
        """By run, its costliest finding in a few words."""
        table = schema.FINDINGS
        statement = sa.select(table.c.run, table.c.kind, table.c.file, table.c.line).where(table.c.n == 0)
        return {row.run: f"{row.kind} {row.file}:{row.line}" for row in self._connection.execute(statement)}

    def prices(self) -> list[dict[str, Any]]:
        """What each line of each file has cost in all runs: seconds lost, in how many runs, as which kinds."""
        table = schema.FINDINGS
        lost = sa.func.sum(sa.func.coalesce(table.c.lost_s, table.c.seconds, 0.0))
        statement = (
            sa.select(
                table.c.file,
                table.c.line,
                table.c.kind,
                lost.label("seconds"),
                sa.func.count(sa.distinct(table.c.run)).label("runs"),
                sa.func.max(table.c.run).label("last"),
                sa.func.max(table.c.speedup).label("speedup"),
            )
            .group_by(table.c.file, table.c.line, table.c.kind)
            .order_by(lost.desc())
            .limit(500)
        )
        return [row._asdict() for row in self._connection.execute(statement)]

    def children(self, run: str, most: int) -> list[str]:
        """The first runs inside a run, oldest first."""
        table = schema.RUNS
        statement = sa.select(table.c.id).where(table.c.parent == run).order_by(table.c.started).limit(most)
        return [str(one) for one in self._connection.scalars(statement)]

    def pulse(self, run: str | None = None) -> dict[str, Any]:
        """A few numbers that change whenever something is written: of a run, or of all."""
        runs, series = schema.RUNS, schema.SERIES
        of_runs = sa.select(sa.func.count(), sa.func.max(runs.c.seen), sa.func.max(runs.c.ended))
        of_series = sa.select(sa.func.count(), sa.func.sum(series.c.count))
        if run is not None:
            of_runs = sa.select(runs.c.state, runs.c.seen, runs.c.ended).where(runs.c.id == run)
            of_series = of_series.where(series.c.run == run)
        else:
            of_runs = of_runs.select_from(runs)
            of_series = of_series.select_from(series)
        about = self._connection.execute(of_runs).one_or_none()
        counted = self._connection.execute(of_series).one()
        return {"run": None if about is None else list(about), "points": [int(one or 0) for one in counted]}

    def links(
        self, *, runs: Collection[str] = (), artifacts: Collection[int] = ()
    ) -> Iterator[dict[str, Any]]:
        """As `artifacts`, of these runs and of these artifacts."""
        table, links = schema.ARTIFACTS, schema.LINKS
        joined = sa.select(table, links.c.run, links.c.relation).join(links, links.c.artifact == table.c.id)
        for column, wanted in ((links.c.run, list(runs)), (links.c.artifact, list(artifacts))):
            for start in range(0, len(wanted), _MOST_NAMED):
                some = column.in_(wanted[start : start + _MOST_NAMED])
                yield from (row._asdict() for row in self._connection.execute(joined.where(some)))

    def artifacts(self, run: str | None = None) -> list[dict[str, Any]]:
        """What runs use and make: the artifact's columns, with `run` and `relation`."""
        table, links = schema.ARTIFACTS, schema.LINKS
        statement = sa.select(table, links.c.run, links.c.relation).join(
            links, links.c.artifact == table.c.id
        )
        if run is not None:
            statement = statement.where(links.c.run == run)
        return [
            row._asdict() for row in self._connection.execute(statement.order_by(table.c.id, links.c.run))
        ]

    def audit_head(self) -> tuple[int, str] | None:
        """The number and the hash of the audit's last row; None if it is empty."""
        table = schema.AUDIT
        row = self._connection.execute(
            sa.select(table.c.seq, table.c.hash).order_by(table.c.seq.desc()).limit(1)
        ).one_or_none()
        return None if row is None else (int(row.seq), str(row.hash))

    def select(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows of a statement with `?` for its parameters, as the driver gives them."""
        first, *rest = statement.split("?")
        named = first + "".join(f":p{place}{part}" for place, part in enumerate(rest))
        given = {f"p{place}": value for place, value in enumerate(parameters)}
        return [tuple(row) for row in self._connection.execute(sa.text(named), given).fetchall()]

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return str(self._connection.dialect.name)

    def audit(self) -> Iterator[sa.Row[Any]]:
        """The audit, oldest first."""
        yield from self._connection.execute(sa.select(schema.AUDIT).order_by(schema.AUDIT.c.seq))


@contextmanager
def reading(address: Address) -> Iterator[Reader]:
    """Read a store, made or migrated if it has to be; what waits in a spool is written first.

    Raises:
        Trouble: it cannot be read.
    """
    from stoker.tracking.store.delivery import adopt

    connection = opening.connect(address)
    try:
        adopt(connection, address)
    finally:
        connection.close()
    try:
        with opening.engine(address).connect() as read:
            if read.dialect.name == "postgresql":
                # All that is read is of one moment, as in SQLite.
                read = read.execution_options(isolation_level="REPEATABLE READ")
            yield Reader(read)
    except sa.exc.DBAPIError as error:
        raise Trouble(f"the store {address} cannot be read ({str(error.orig).splitlines()[0]})") from error


def _loads(text: str, name: str) -> Any:
    """The JSON of a column; empty where somebody has put something else there."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = None
    if name == "arguments":
        return [str(one) for one in value] if isinstance(value, list) else []
    return value if isinstance(value, dict) else {}


def _float(value: float | None) -> float:
    """A value that was logged: NULL is what is not a number, and so is text that was put in its place."""
    return float(value) if isinstance(value, int | float) else math.nan
