"""Show a run: what it was, what it logged, used and made, its ledger and its findings."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from stoker.doctor.report import run_table
from stoker.tracking.store import address
from stoker.tracking.store.entries import finite
from stoker.tracking.store.queries import reading


def configure(parser: argparse.ArgumentParser) -> None:
    """Which run."""
    parser.add_argument("run_id", metavar="ID", nargs="?", help="the run (the newest)")
    parser.add_argument(
        "--json", action="store_true", help="print everything as JSON", default=argparse.SUPPRESS
    )


def run(args: argparse.Namespace) -> int:
    """Print the run."""
    with reading(address.needed(getattr(args, "store", None))) as reader:
        name = reader.resolve(args.run_id)
        (row,) = reader.runs(name)
        shown: dict[str, Any] = {**row.columns, "state": row.state, "seconds": row.seconds}
        shown["git_diff"] = reader.column(name, "git_diff")
        shown["series"] = {series: asdict(one) for series, one in row.series.items()}
        shown["ledger"] = reader.ledger(name)
        shown["findings"] = reader.findings(name)
        shown["artifacts"] = reader.artifacts(name)
    if args.json:
        print(json.dumps(finite(shown), indent=2))
    else:
        run_table.show_one(shown)
    return 0
