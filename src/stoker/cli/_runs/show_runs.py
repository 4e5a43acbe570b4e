"""Show a run: what it was, what it logged, used and made, its ledger and its findings; or where a job's time went."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from stoker.cli._options import add_json, add_price, read_store
from stoker.doctor.report import run_table
from stoker.errors import RecordError
from stoker.files import JOBS
from stoker.goodput.history import find_job
from stoker.printing import print_json
from stoker.tracking.store.plain_values import make_plain
from stoker.tracking.store.queries import open_reader


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the run to show."""
    parser.add_argument(
        "run_id", metavar="ID", nargs="?", help="the run, or a job of stoker launch (the newest run)"
    )
    add_price(parser, "a job: what one worker costs, such as 3.20/h")
    add_json(parser, "print everything as JSON", inherits=True)


def run(args: argparse.Namespace) -> int:
    """Print the run, or the job."""
    if args.run_id and find_job(JOBS, args.run_id, exactly=True) is not None:
        return _show_job(args)
    try:
        shown = _read_run(args)
    except RecordError:
        if args.run_id and find_job(JOBS, args.run_id) is not None:
            return _show_job(args)
        raise
    if args.json:
        print_json(make_plain(shown))
    else:
        run_table.show_one(shown)
    return 0


def _read_run(args: argparse.Namespace) -> dict[str, Any]:
    with open_reader(read_store(args)) as reader:
        row = reader.run(reader.resolve(args.run_id))
        return {
            **row.to_dict(),
            "ledger": reader.ledger(row.id),
            "findings": reader.findings(row.id),
            "rollouts": reader.rollouts(row.id),
            "artifacts": [asdict(link) for link in reader.artifacts(row.id)],
        }


def _show_job(args: argparse.Namespace) -> int:
    from stoker.doctor.report import goodput
    from stoker.goodput.fold import fold
    from stoker.goodput.history import read_history

    directory = find_job(JOBS, args.run_id)
    assert directory is not None
    ledger = fold(directory.name, read_history(directory))
    if args.json:
        print_json(ledger.to_json(args.price))
    else:
        goodput.show(ledger, args.price)
    return 0
