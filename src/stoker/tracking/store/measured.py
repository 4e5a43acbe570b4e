"""The record of a measured run, in the store as in its file: the row of the run, its ledger and its findings."""

from __future__ import annotations

import calendar
import time
from typing import Any

from stoker.records import Record
from stoker.tracking.store import address
from stoker.tracking.store.entries import Entry, finite
from stoker.tracking.store.tracking import Run
from stoker.tracking.store.writer import CLOSING_S

# Before the account, in the name of a series.
SERIES = "ledger/"


def begin(run_id: str, program: str, arguments: list[str], kind: str, store: str | None = None) -> Run:
    """A run with the id of a record that is to come, in the store that is meant.

    Raises:
        UsageError: the store's URL makes no sense.
    """
    more = {"program": program, "arguments": arguments}
    return Run(program, {}, store=address.find(store), kind=kind, run_id=run_id, more=more)


def end(run: Run, record: Record) -> None:
    """The record is finished: everything it has for the store."""
    progress(run, record)
    failed = bool(record.exit_code)
    run.finish("failed" if failed else "finished", **columns(record))
    # `stoker run` may end by the signal that ended its program, which leaves no time for anything.
    run.flush(CLOSING_S)


def progress(run: Run, record: Record) -> None:
    """The run goes on: its ledger so far, and how it got there as series, by account."""
    run.put(*measurements(record))
    run.log(record.steps, {f"{SERIES}{account}": seconds for account, seconds in record.accounts.items()})


def columns(record: Record) -> dict[str, Any]:
    """What the row of a run has of its record."""
    machine = {"device": record.device.name, "device kind": record.device.kind, **record.environment}
    return {
        "exit_code": record.exit_code,
        "versions": record.versions,
        "machine": finite(machine),
        "steps": record.steps,
        "wall_s": record.wall_s,
        "steps_per_s": record.steps_per_s,
        "examples_per_s": record.examples_per_s,
    }


def measurements(record: Record) -> list[Entry]:
    """The ledger and the findings of a record."""
    findings = record.to_json()["findings"]
    return [["ledger", record.id, dict(record.accounts)], ["findings", record.id, finite(findings)]]


def started_at(record: Record) -> float:
    """When it began, in seconds since 1970; now, if the record does not say."""
    try:
        return float(calendar.timegm(time.strptime(record.started, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return time.time()
