"""Keep the record of a measured run in the store as in its file: the run's row, its ledger and its findings."""

from __future__ import annotations

import calendar
import math
import time

from stoker.records import Record
from stoker.tracking.store import address
from stoker.tracking.store.events import Columns, Event, FindingsMeasured, LedgerMeasured
from stoker.tracking.store.plain_values import make_plain
from stoker.tracking.store.tracking import TrackedRun, name_end
from stoker.tracking.store.writer import CLOSING_S

# A ledger series is named by this prefix and the account.
SERIES_PREFIX = "ledger/"


def begin(run_id: str, program: str, arguments: list[str], kind: str, store: str | None = None) -> TrackedRun:
    """Start a run with the id that its record is going to have.

    Raises:
        UsageError: the store's URL is invalid.
    """
    more = {"program": program, "arguments": arguments}
    return TrackedRun(program, {}, store=address.find(store), kind=kind, run_id=run_id, more=more)


def end(run: TrackedRun, record: Record) -> None:
    """Store everything in a finished record, and end the run."""
    update(run, record)
    run.finish(name_end(record.exit_code), **to_columns(record))
    # `stoker run` may die from the signal that ended its program, which leaves no time afterwards.
    run.flush(CLOSING_S)


def update(run: TrackedRun, record: Record) -> None:
    """Store the ledger and findings so far. Log the ledger as one series per account, and the epochs of `fit`."""
    run.put(*to_events(record))
    for row in record.tables.epochs:
        # The record still contains the epochs that an earlier update has logged.
        if row.step > run.logged_step:
            run.logged_step = row.step
            values = {name: math.nan if value is None else value for name, value in row.values.items()}
            run.log(row.step, {**values, "epoch": row.epoch})
    run.log(
        record.steps, {f"{SERIES_PREFIX}{account}": seconds for account, seconds in record.accounts.items()}
    )


def name_state(record: Record) -> str:
    """Return the state of a run that only its record tells of."""
    return name_end(record.exit_code) if record.exit_code else record.state


def to_columns(record: Record) -> Columns:
    """Return the columns of a run's row that come from its record."""
    machine = {"device": record.device.name, "device kind": record.device.kind, **record.environment}
    return {
        "exit_code": record.exit_code,
        "versions": record.versions,
        "machine": make_plain(machine),
        "steps": record.steps,
        "wall_s": record.wall_s,
        "steps_per_s": record.steps_per_s,
        "examples_per_s": record.examples_per_s,
    }


def to_events(record: Record) -> list[Event]:
    """Return the ledger and the findings of a record as events."""
    findings = make_plain(record.to_json()["findings"])
    return [LedgerMeasured(record.id, dict(record.accounts)), FindingsMeasured(record.id, findings)]


def find_start(record: Record) -> float:
    """Return when the run started, in seconds since 1970; the present time if the record does not say."""
    try:
        return float(calendar.timegm(time.strptime(record.started, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return time.time()
