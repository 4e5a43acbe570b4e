"""The jobs of `stoker launch` below this directory, and where the time of each one went."""

from __future__ import annotations

from pathlib import Path

from stoker.errors import UsageError
from stoker.goodput.accounts import MEANINGS
from stoker.goodput.diary import EVENTS
from stoker.goodput.fold import fold
from stoker.goodput.history import find_job, read_history
from stoker.goodput.ledger import JobLedger, Price
from stoker.tracking.store.plain_values import JsonObject

# Each ledger is computed from the job's events when somebody asks for it.
_MOST_JOBS = 50


def list_jobs(jobs: Path) -> JsonObject:
    """List the newest jobs, without those whose events are missing or damaged, and say how many there are."""
    # The names of jobs begin with their time.
    found = sorted(
        (path.parent for path in jobs.glob(f"*/{EVENTS}")), key=lambda path: path.name, reverse=True
    )
    rows = []
    for directory in found[:_MOST_JOBS]:
        try:
            ledger = fold(directory.name, read_history(directory))
        except UsageError:
            continue
        rows.append({"goodput": ledger.goodput, **{name: getattr(ledger, name) for name in _SHOWN}})
    return {"count": len(found), "rows": rows}


_SHOWN = ("job", "state", "wall_s", "workers", "restarts", "steps", "lost_steps")


def describe_job(jobs: Path, name: str, price: str) -> JsonObject:
    """Return the ledger of a job; with a price, also what each account and each cause has cost.

    Raises:
        UsageError: there is no such job, or the price is invalid.
    """
    directory = find_job(jobs, name)
    if directory is None:
        raise UsageError(f"there is no job {name} with events here")
    ledger = fold(directory.name, read_history(directory))
    parsed = Price.parse(price) if price else None
    return {
        **ledger.to_json(parsed),
        "meanings": MEANINGS,
        **({} if parsed is None else _count_money(ledger, parsed)),
    }


def _count_money(ledger: JobLedger, price: Price) -> JsonObject:
    paid_s = sum(ledger.worker_s.values())
    # A second of the job costs what its workers cost in that second.
    share = paid_s / ledger.wall_s if ledger.wall_s else 0.0
    return {
        "paid": price.show(paid_s),
        "account_costs": {name: price.show(seconds) for name, seconds in ledger.worker_s.items()},
        "cause_costs": [price.show(cause.seconds * share) for cause in ledger.causes],
    }
