"""A batch of entries as SQL, in one transaction: all of it, once, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from stoker.tracking.store import entries, sealing
from stoker.tracking.store.audit import SEALED, Chain, actor
from stoker.tracking.store.connections import Connection
from stoker.tracking.store.entries import Entry

# A run's columns, in the order of their table, without the id.
RUN_COLUMNS = (
    "name",
    "kind",
    "program",
    "arguments",
    "parameters",
    "git_commit",
    "git_diff",
    "versions",
    "machine",
    "state",
    "error",
    "exit_code",
    "parent",
    "worker",
    "started",
    "ended",
    "seen",
    "steps",
    "wall_s",
    "steps_per_s",
    "examples_per_s",
)
_JSON = frozenset({"arguments", "parameters", "versions", "machine"})
# Entries that change what a run is, beside values.
_CONTENT = frozenset({"run", "change", "ledger", "findings"})
# What a run has of its own, beside its row.
_OF_A_RUN = ("series", "ledger", "findings", "links")


@dataclass(frozen=True)
class Batch:
    """Entries of one writer, with their place among its batches."""

    writer: str
    number: int
    entries: list[Entry]


@dataclass(frozen=True)
class Head:
    """The end of the audit's chain."""

    seq: int
    hash: str


def apply(connection: Connection, batch: Batch, streams: sealing.Streams | None = None) -> Head | None:
    """Write a batch, unless it has been written; the audit's end if it came to be another.

    `streams` are those of the process's earlier batches: with them, the points of a run need not be read to seal it.

    Raises:
        Trouble: nothing of it was written, or it is not known whether it was: apply it again.
    """
    streams = sealing.Streams() if streams is None else streams
    try:
        with connection.transaction():
            known = connection.execute("SELECT batch FROM writers WHERE id = ?", (batch.writer,))
            if known and int(known[0][0]) >= batch.number:
                return None
            chain = _Applied(connection, streams).all(batch.entries)
            connection.execute(
                "INSERT INTO writers (id, batch, time) VALUES (?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, time = excluded.time",
                (batch.writer, batch.number, time.time()),
            )
    except BaseException:
        streams.clear()
        raise
    return None if chain is None else Head(chain.seq, chain.head)


class _Applied:
    """One batch while it is written."""

    def __init__(self, connection: Connection, streams: sealing.Streams) -> None:
        self._connection = connection
        self._streams = streams
        # The runs whose content this batch changes.
        self._touched: set[str] = set()
        self._chain: Chain | None = None

    def all(self, batch: Sequence[Entry]) -> Chain | None:
        """Everything but values in its order, then the values, series by series."""
        # By run and series: steps, times, values.
        series: dict[tuple[str, str], tuple[list[int], list[float], list[float]]] = {}
        for entry in batch:
            if entry[0] == "values":
                _, run, step, at, named = entry
                for name, value in named.items():
                    columns = series.get((run, name))
                    if columns is None:
                        columns = series[run, name] = ([], [], [])
                    columns[0].append(step)
                    columns[1].append(at)
                    columns[2].append(value)
            else:
                getattr(self, f"_{entry[0]}")(*entry[1:])
                if entry[0] in _CONTENT:
                    self._touched.add(entry[1])
        rows: list[tuple[Any, ...]] = []
        for (run, name), columns in series.items():
            self._touched.add(run)
            rows += self._series(run, name, *columns)
        if rows:
            self._connection.append_points(rows)
        for run in sorted(self._touched):
            self._seal(run)
        return self._chain

    def _seal(self, run: str) -> None:
        """A run that has ended is as it will stay: put down what it is."""
        if self._connection.execute("SELECT 1 FROM runs WHERE id = ? AND ended IS NOT NULL", (run,)):
            digests = sealing.digests(self._connection.execute, run, self._streams)
            self._audit(time.time(), SEALED, run, {**digests, "by": actor()})

    def _series(
        self, run: str, name: str, steps: list[int], times: list[float], values: list[float]
    ) -> Iterator[tuple[Any, ...]]:
        """Count a series' new points into it; their rows."""
        # NaN is the one value that is not itself.
        numbers = [value for value in values if value == value]
        last = values[-1]
        ((series, count),) = self._connection.execute(
            "INSERT INTO series (run, name, count, last, last_step, min, max) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (run, name) DO UPDATE SET count = series.count + excluded.count, last = excluded.last, "
            "last_step = excluded.last_step, "
            "min = CASE WHEN series.min <= excluded.min OR excluded.min IS NULL THEN series.min ELSE excluded.min END, "
            "max = CASE WHEN series.max >= excluded.max OR excluded.max IS NULL THEN series.max ELSE excluded.max END "
            "RETURNING id, count",
            (
                run,
                entries.text(name),
                len(values),
                last if last == last else None,
                steps[-1],
                min(numbers, default=None),
                max(numbers, default=None),
            ),
        )
        first = count - len(values)
        self._streams.add(series, first, steps, times, values)
        if len(numbers) < len(values):
            given: Sequence[float | None] = [value if value == value else None for value in values]
        else:
            given = values
        return zip(repeat(series), range(first, count), steps, times, given, strict=False)

    def _run(self, run: str, columns: dict[str, Any]) -> None:
        given = _as_columns(columns)
        names = ", ".join(given)
        self._connection.execute(
            f"INSERT INTO runs (id, {names}) VALUES (?{', ?' * len(given)}) ON CONFLICT (id) DO NOTHING",
            (run, *given.values()),
        )

    def _change(self, run: str, columns: dict[str, Any]) -> None:
        given = _as_columns(columns)
        sets = ", ".join(f"{name} = ?" for name in given)
        self._connection.execute(f"UPDATE runs SET {sets} WHERE id = ?", (*given.values(), run))

    def _seen(self, runs: list[str], at: float) -> None:
        self._connection.many("UPDATE runs SET seen = ? WHERE id = ?", [(at, run) for run in runs])

    def _ledger(self, run: str, accounts: dict[str, float]) -> None:
        self._connection.execute("DELETE FROM ledger WHERE run = ?", (run,))
        self._connection.many(
            "INSERT INTO ledger (run, account, seconds) VALUES (?, ?, ?)",
            [(run, entries.text(account), seconds) for account, seconds in accounts.items()],
        )

    def _findings(self, run: str, findings: list[dict[str, Any]]) -> None:
        self._connection.execute("DELETE FROM findings WHERE run = ?", (run,))
        self._connection.many(
            "INSERT INTO findings (run, n, kind, code, file, line, seconds, lost_s, speedup, finding) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(run, n, *_finding(finding)) for n, finding in enumerate(findings)],
        )

    def _artifact(self, run: str, relation: str, columns: dict[str, Any]) -> None:
        given = {name: columns[name] for name in ("hash", "kind", "name", "size", "path", "time")}
        row = tuple(entries.text(value) if isinstance(value, str) else value for value in given.values())
        self._connection.execute(
            f"INSERT INTO artifacts ({', '.join(given)}) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (hash, kind, path) DO NOTHING",
            row,
        )
        ((artifact,),) = self._connection.execute(
            "SELECT id FROM artifacts WHERE hash = ? AND kind = ? AND path = ?", (row[0], row[1], row[4])
        )
        self._connection.execute(
            "INSERT INTO links (run, artifact, relation) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (run, artifact, relation),
        )

    def _audit(self, at: float, event: str, run: str | None, details: dict[str, Any]) -> None:
        if self._chain is None:
            self._chain = Chain(self._connection)
        seq = self._chain.append(at, event, run, details)
        if event == "run started":
            self._connection.execute("UPDATE runs SET audit_seq = ? WHERE id = ?", (seq, run))

    def _delete(self, run: str) -> None:
        self._touched.discard(run)
        self._connection.execute(
            "DELETE FROM points WHERE series IN (SELECT id FROM series WHERE run = ?)", (run,)
        )
        for table in _OF_A_RUN:
            self._connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
        self._connection.execute("DELETE FROM runs WHERE id = ?", (run,))
        self._connection.execute("DELETE FROM artifacts WHERE id NOT IN (SELECT artifact FROM links)")


def _as_columns(given: dict[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in RUN_COLUMNS:
        if name in given:
            value = given[name]
            if name in _JSON:
                value = entries.compact(value)
            columns[name] = entries.text(value) if isinstance(value, str) else value
    return columns


def _finding(finding: dict[str, Any]) -> tuple[Any, ...]:
    price = finding.get("what_if") or {}
    return (
        finding["kind"],
        finding["code"],
        entries.text(finding["file"]),
        finding["line"],
        finding.get("seconds"),
        finding.get("lost_s"),
        price.get("speedup"),
        entries.compact(finding),
    )
