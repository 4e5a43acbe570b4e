"""Read runs back from the store. Lists never touch the points."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from stoker.errors import RecordError
from stoker.tracking.store import audit, opening, schema
from stoker.tracking.store.address import Address
from stoker.tracking.store.connections import Connection, Row
from stoker.tracking.store.delivery import adopt_spools
from stoker.tracking.store.plain_values import JsonObject
from stoker.tracking.store.record_files import LATEST, describe_matches
from stoker.tracking.store.schema import ArtifactLink, AuditRow, RunRow, SeriesRow

# A running run reports every ten seconds; after this long without a report, it must have been killed.
LOST_AFTER_S = 60.0
LOST = "lost"
# SQLite takes about 32,000 parameters in one statement.
_MOST_PARAMETERS = 10_000
_AUDIT_BLOCK = 20_000
_LINKS = (
    "SELECT a.id, a.hash, a.kind, a.name, a.size, a.path, a.time, l.run, l.relation "
    "FROM artifacts a JOIN links l ON l.artifact = a.id"
)


@dataclass(frozen=True, slots=True)
class LinePrice:
    """The cost of a line of a file in all runs, by one kind of finding."""

    file: str
    line: int
    kind: str
    seconds: float
    runs: int
    last: str
    speedup: float | None


class Reader:
    """A store at one moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._connection.dialect

    def select(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run a query; `?` marks its parameters."""
        return self._connection.execute(statement, parameters)

    def run(self, run: str) -> RunRow:
        """Return a run by its id, with every column."""
        return self._read_runs(schema.RUN_COLUMNS, (run,))[0]

    def runs(self, *ids: str) -> list[RunRow]:
        """Return these runs, or all, newest first, without the columns that a list does not show."""
        return self._read_runs(schema.LISTED_COLUMNS, ids)

    def _read_runs(self, columns: Sequence[str], ids: Sequence[str]) -> list[RunRow]:
        chosen = f"IN ({_make_placeholders(ids)})"
        where = f" WHERE id {chosen}" if ids else ""
        rows = self.select(
            f"SELECT {', '.join(columns)} FROM runs{where} ORDER BY started DESC, id DESC", ids
        )
        load = cache(_load_json)
        now = time.time()
        missing: JsonObject = dict.fromkeys(schema.RUN_COLUMNS)
        found: dict[str, RunRow] = {}
        for row in rows:
            values = missing | dict(zip(columns, row, strict=True))
            for name in schema.JSON_COLUMNS:
                values[name] = load(values[name], name)
            for name in schema.NUMBER_COLUMNS:
                # SQLite accepts text in place of a number; one damaged run must not hide the others.
                if isinstance(values[name], str | bytes):
                    values[name] = None
            values["started"] = values["started"] or 0.0
            values["state"] = str(values["state"])
            if values["state"] == "running" and now - (values["seen"] or values["started"]) > LOST_AFTER_S:
                values["state"] = LOST
            found[values["id"]] = RunRow(**values)
        names = ", ".join(schema.SERIES_COLUMNS)
        where = f" WHERE run {chosen}" if ids else ""
        for run, name, count, last, *rest in self.select(f"SELECT run, {names} FROM series{where}", ids):
            if run in found:
                found[run].series[name] = SeriesRow(name, count, _to_float(last), *rest)
        return list(found.values())

    def resolve(self, run: str | None) -> str:
        """Return the id of the run that starts with this text; of the newest run if None or `latest`.

        Raises:
            RecordError: no run has such an id, or several do.
        """
        if run is None or run == LATEST:
            rows = self.select("SELECT id FROM runs ORDER BY started DESC LIMIT 1")
        else:
            escaped = run.replace("/", "//").replace("%", "/%").replace("_", "/_")
            rows = self.select(
                "SELECT id FROM runs WHERE id LIKE ? ESCAPE '/' ORDER BY started DESC LIMIT 50",
                (f"{escaped}%",),
            )
            if (run,) in rows:
                return run
        if len(rows) != 1:
            found = "no run" if run in (None, LATEST) else describe_matches(run, len(rows))
            raise RecordError(f"{found} in the store: `stoker runs` lists them")
        return str(rows[0][0])

    def points(self, run: str, name: str) -> list[tuple[int, float, float]]:
        """Return a series as (step, time, value), in the order of logging."""
        return _to_points(
            self.select(
                "SELECT p.step, p.time, p.value FROM points p JOIN series s ON s.id = p.series "
                "WHERE s.run = ? AND s.name = ? ORDER BY p.n",
                (run, name),
            )
        )

    def thin_points(self, run: str, name: str, most: int) -> list[tuple[int, float, float]]:
        """Return a series thinned in SQL to about `most` points, at least 2.

        The lowest and the highest value of each stretch stay.
        """
        most = max(2, most)
        found = self.select("SELECT id, count FROM series WHERE run = ? AND name = ?", (run, name))
        if not found or found[0][1] <= most:
            return self.points(run, name)
        ((series, count),) = found
        stretch = f"n / {math.ceil(2 * count / most)}"
        return _to_points(
            self.select(
                "SELECT step, time, value FROM ("
                "SELECT n, step, time, value, "
                f"row_number() OVER (PARTITION BY {stretch} ORDER BY value) AS low, "
                f"row_number() OVER (PARTITION BY {stretch} ORDER BY value DESC) AS high "
                "FROM points WHERE series = ?) AS ranked WHERE low = 1 OR high = 1 ORDER BY n",
                (series,),
            )
        )

    def ledger(self, run: str) -> dict[str, float]:
        """Return the seconds by account, largest first."""
        rows = self.select("SELECT account, seconds FROM ledger WHERE run = ? ORDER BY seconds DESC", (run,))
        return {str(account): float(seconds) for account, seconds in rows}

    def findings(self, run: str) -> list[JsonObject]:
        """Return the findings as the record has them, costliest first."""
        rows = self.select("SELECT finding FROM findings WHERE run = ? ORDER BY n", (run,))
        return [json.loads(text) for (text,) in rows]

    def first_findings(self) -> dict[str, str]:
        """Return the costliest finding of each run, in a few words."""
        rows = self.select("SELECT run, kind, file, line FROM findings WHERE n = 0")
        return {run: f"{kind} {file}:{line}" for run, kind, file, line in rows}

    def prices(self) -> list[LinePrice]:
        """Return what each line of each file has cost in all runs, costliest first."""
        rows = self.select(
            "SELECT file, line, kind, sum(coalesce(lost_s, seconds, 0.0)) AS lost, count(DISTINCT run), max(run), "
            "max(speedup) FROM findings GROUP BY file, line, kind ORDER BY lost DESC LIMIT 500"
        )
        return [LinePrice(*row) for row in rows]

    def children(self, run: str, most: int) -> list[str]:
        """Return the first runs inside a run, oldest first."""
        rows = self.select("SELECT id FROM runs WHERE parent = ? ORDER BY started LIMIT ?", (run, most))
        return [str(child) for (child,) in rows]

    def pulse(self, run: str | None = None) -> JsonObject:
        """Return a few numbers that change whenever something is written about a run, or about any run."""
        if run is None:
            about = self.select("SELECT count(*), max(seen), max(ended) FROM runs")
            counts = self.select("SELECT count(*), sum(count) FROM series")
        else:
            about = self.select("SELECT state, seen, ended FROM runs WHERE id = ?", (run,))
            counts = self.select("SELECT count(*), sum(count) FROM series WHERE run = ?", (run,))
        return {"run": list(about[0]) if about else None, "points": [int(one or 0) for one in counts[0]]}

    def artifacts(self, run: str | None = None) -> list[ArtifactLink]:
        """Return what a run, or every run, uses and makes."""
        where, parameters = ("", ()) if run is None else (" WHERE l.run = ?", (run,))
        return [
            ArtifactLink(*row) for row in self.select(f"{_LINKS}{where} ORDER BY a.id, l.run", parameters)
        ]

    def links(self, *, runs: Collection[str] = (), artifacts: Collection[int] = ()) -> Iterator[ArtifactLink]:
        """Return the same as `artifacts`, but only for these runs and these artifacts."""
        for column, wanted in (("run", list(runs)), ("artifact", list(artifacts))):
            for start in range(0, len(wanted), _MOST_PARAMETERS):
                some = wanted[start : start + _MOST_PARAMETERS]
                rows = self.select(f"{_LINKS} WHERE l.{column} IN ({_make_placeholders(some)})", some)
                yield from (ArtifactLink(*row) for row in rows)

    def audit_head(self) -> tuple[int, str] | None:
        """Return the number and hash of the audit's last row; None if the audit is empty."""
        rows = self.select("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def audit(self) -> Iterator[AuditRow]:
        """Yield the audit, oldest row first."""
        query = f"SELECT {', '.join(schema.AUDIT_COLUMNS)} FROM audit"
        rows = self.select(f"{query} ORDER BY seq LIMIT {_AUDIT_BLOCK}")
        while rows:
            yield from (AuditRow(*row) for row in rows)
            rows = self.select(f"{query} WHERE seq > ? ORDER BY seq LIMIT {_AUDIT_BLOCK}", (rows[-1][0],))

    def rollouts(self, run: str) -> list[dict[str, object]]:
        """Return what a server found out about its candidates, oldest first."""
        query = "SELECT time, details FROM audit WHERE run = ? AND event = ? ORDER BY seq"
        found: list[dict[str, object]] = []
        for at, text in self.select(query, (run, audit.COMPARED)):
            details = _load_json(str(text), "details")
            assert isinstance(details, dict)
            found.append({"time": at, **details})
        return found


@contextmanager
def open_reader(address: Address, *, adopt: bool = True) -> Iterator[Reader]:
    """Open a store for reading, migrated if needed. By default, spools left behind are written to it first.

    Raises:
        StoreError: the store cannot be read.
    """
    connection = opening.connect(address)
    try:
        if adopt:
            adopt_spools(connection, address)
        with connection.snapshot():
            yield Reader(connection)
    finally:
        connection.close()


def _make_placeholders(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _load_json(text: str, name: str) -> object:
    """Return the JSON of a column; empty if somebody has put something else there."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = None
    if name == "arguments":
        return [str(one) for one in value] if isinstance(value, list) else []
    return value if isinstance(value, dict) else {}


def _to_points(rows: list[Row]) -> list[tuple[int, float, float]]:
    return [(step, at, _to_float(value)) for step, at, value in rows]


def _to_float(value: object) -> float:
    """Return a logged value: NULL is NaN, and so is text that somebody has put there."""
    return float(value) if isinstance(value, int | float) else math.nan
