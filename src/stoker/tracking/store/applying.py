"""Write a batch of events to the store in one transaction: once, and completely or not at all."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import cast

from stoker.tracking.store import audit, schema, sealing
from stoker.tracking.store.connections import Connection, Row
from stoker.tracking.store.events import (
    ArtifactColumns,
    ArtifactLinked,
    AuditNoted,
    Batch,
    Columns,
    Event,
    FindingsMeasured,
    LedgerMeasured,
    RunChanged,
    RunDeleted,
    RunsSeen,
    RunStarted,
    ValuesLogged,
)
from stoker.tracking.store.heads import Head
from stoker.tracking.store.plain_values import JsonObject, clean_text, dump_compact

_JSON = frozenset(schema.JSON_COLUMNS)
# The tables that hold the data of a run, besides `runs` itself and `points`.
_TABLES_OF_RUN = ("series", "ledger", "findings", "links")
_ARTIFACT_COLUMNS = tuple(ArtifactColumns.__annotations__)


def apply(connection: Connection, batch: Batch, streams: sealing.Streams | None = None) -> Head | None:
    """Write a batch, unless it was written before. Return the audit's new head if the audit grew.

    `streams` holds hashes of the points in this process's earlier batches, so that sealing need not read them back.

    Raises:
        StoreError: nothing was written, or it is unknown whether it was: apply the batch again.
    """
    streams = sealing.Streams() if streams is None else streams
    try:
        with connection.transaction():
            known = connection.execute("SELECT batch FROM writers WHERE id = ?", (batch.writer,))
            if known and int(known[0][0]) >= batch.number:
                return None
            chain = _BatchWriter(connection, streams).write(batch.events)
            connection.execute(
                "INSERT INTO writers (id, batch, time) VALUES (?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, time = excluded.time",
                (batch.writer, batch.number, time.time()),
            )
    except BaseException:
        streams.clear()
        raise
    return None if chain is None else Head(chain.seq, chain.head)


class _BatchWriter:
    """Writes the events of one batch, inside its transaction."""

    def __init__(self, connection: Connection, streams: sealing.Streams) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._streams = streams
        # The runs whose content this batch changes.
        self._touched: set[str] = set()
        self._chain: audit.Chain | None = None

    def write(self, events: Sequence[Event]) -> audit.Chain | None:
        """Write everything but values in order, then the values series by series, then seals."""
        # (steps, times, values) by run and name.
        series: dict[tuple[str, str], tuple[list[int], list[float], list[float]]] = {}
        for event in events:
            if type(event) is ValuesLogged:
                run, step, at, values = event
                for name, value in values.items():
                    columns = series.get((run, name))
                    if columns is None:
                        columns = series[run, name] = ([], [], [])
                    columns[0].append(step)
                    columns[1].append(at)
                    columns[2].append(value)
            else:
                self._write_event(event)
        rows: list[Row] = []
        for (run, name), columns in series.items():
            self._touched.add(run)
            rows += self._extend_series(run, name, *columns)
        if rows:
            self._connection.append_points(rows)
        for run in sorted(self._touched):
            self._seal_if_ended(run)
        return self._chain

    def _write_event(self, event: Event) -> None:
        match event:
            case RunStarted(run, columns):
                self._insert_run(run, columns)
                self._touched.add(run)
            case RunChanged(run, columns):
                self._update_run(run, columns)
                self._touched.add(run)
            case LedgerMeasured(run, accounts):
                self._replace_ledger(run, accounts)
                self._touched.add(run)
            case FindingsMeasured(run, findings):
                self._replace_findings(run, findings)
                self._touched.add(run)
            case ArtifactLinked(run, relation, artifact):
                self._link_artifact(run, relation, artifact)
            case AuditNoted():
                self._append_audit(event)
            case RunsSeen(runs, at):
                rows = [(at, run) for run in runs]
                self._connection.execute_many("UPDATE runs SET seen = ? WHERE id = ?", rows)
            case RunDeleted(run):
                self._delete_run(run)
                self._touched.discard(run)

    def _seal_if_ended(self, run: str) -> None:
        """Seal a run that has ended: note in the audit what it contains."""
        if self._execute("SELECT 1 FROM runs WHERE id = ? AND ended IS NOT NULL", (run,)):
            digests = sealing.compute_digests(self._execute, run, self._streams)
            self._append_audit(audit.note(audit.SEALED, run, digests))

    def _extend_series(
        self, run: str, name: str, steps: list[int], times: list[float], values: list[float]
    ) -> Iterator[Row]:
        """Add new points to a series' figures, and yield their rows for `points`."""
        # NaN is the one value that does not equal itself.
        numbers = [value for value in values if value == value]
        last = values[-1]
        ((series, count),) = self._execute(
            "INSERT INTO series (run, name, count, last, last_step, min, max) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (run, name) DO UPDATE SET count = series.count + excluded.count, last = excluded.last, "
            "last_step = excluded.last_step, "
            "min = CASE WHEN series.min <= excluded.min OR excluded.min IS NULL THEN series.min ELSE excluded.min END, "
            "max = CASE WHEN series.max >= excluded.max OR excluded.max IS NULL THEN series.max ELSE excluded.max END "
            "RETURNING id, count",
            (
                run,
                clean_text(name),
                len(values),
                last if last == last else None,
                steps[-1],
                min(numbers, default=None),
                max(numbers, default=None),
            ),
        )
        first = count - len(values)
        self._streams.add(series, first, steps, times, values)
        stored: Sequence[float | None] = values
        if len(numbers) < len(values):
            stored = [value if value == value else None for value in values]
        return zip(repeat(series), range(first, count), steps, times, stored, strict=False)

    def _insert_run(self, run: str, columns: Columns) -> None:
        row = _to_row(columns)
        self._execute(
            f"INSERT INTO runs (id, {', '.join(row)}) VALUES (?{', ?' * len(row)}) ON CONFLICT (id) DO NOTHING",
            (run, *row.values()),
        )

    def _update_run(self, run: str, columns: Columns) -> None:
        row = _to_row(columns)
        changes = ", ".join(f"{name} = ?" for name in row)
        self._execute(f"UPDATE runs SET {changes} WHERE id = ?", (*row.values(), run))

    def _replace_ledger(self, run: str, accounts: dict[str, float]) -> None:
        self._execute("DELETE FROM ledger WHERE run = ?", (run,))
        self._connection.execute_many(
            "INSERT INTO ledger (run, account, seconds) VALUES (?, ?, ?)",
            [(run, clean_text(account), seconds) for account, seconds in accounts.items()],
        )

    def _replace_findings(self, run: str, findings: list[JsonObject]) -> None:
        self._execute("DELETE FROM findings WHERE run = ?", (run,))
        self._connection.execute_many(
            "INSERT INTO findings (run, n, kind, code, file, line, seconds, lost_s, speedup, finding) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(run, n, *_finding_columns(finding)) for n, finding in enumerate(findings)],
        )

    def _link_artifact(self, run: str, relation: str, artifact: ArtifactColumns) -> None:
        given = cast(JsonObject, artifact)
        columns = {name: _clean(given[name]) for name in _ARTIFACT_COLUMNS}
        self._execute(
            f"INSERT INTO artifacts ({', '.join(columns)}) VALUES (?{', ?' * (len(columns) - 1)}) "
            "ON CONFLICT (hash, kind, path) DO NOTHING",
            tuple(columns.values()),
        )
        ((number,),) = self._execute(
            "SELECT id FROM artifacts WHERE hash = ? AND kind = ? AND path = ?",
            (columns["hash"], columns["kind"], columns["path"]),
        )
        self._execute(
            "INSERT INTO links (run, artifact, relation) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (run, number, relation),
        )

    def _append_audit(self, noted: AuditNoted) -> None:
        if self._chain is None:
            self._chain = audit.Chain(self._connection)
        seq = self._chain.append(noted)
        if noted.event == audit.STARTED:
            self._execute("UPDATE runs SET audit_seq = ? WHERE id = ?", (seq, noted.run))

    def _delete_run(self, run: str) -> None:
        self._execute("DELETE FROM points WHERE series IN (SELECT id FROM series WHERE run = ?)", (run,))
        for table in _TABLES_OF_RUN:
            self._execute(f"DELETE FROM {table} WHERE run = ?", (run,))
        self._execute("DELETE FROM runs WHERE id = ?", (run,))
        self._execute("DELETE FROM artifacts WHERE id NOT IN (SELECT artifact FROM links)")


def _to_row(columns: Columns) -> dict[str, object]:
    """Return the columns as the database takes them; names that are not columns of `runs` are left out."""
    return {
        name: dump_compact(columns[name]) if name in _JSON else _clean(columns[name])
        for name in schema.WRITTEN_COLUMNS
        if name in columns
    }


def _clean(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


def _finding_columns(finding: JsonObject) -> Row:
    price = finding.get("what_if") or {}
    return (
        finding["kind"],
        finding["code"],
        clean_text(finding["file"]),
        finding["line"],
        finding.get("seconds"),
        finding.get("lost_s"),
        price.get("speedup"),
        dump_compact(finding),
    )
