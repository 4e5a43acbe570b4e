"""Show a run: what it was, what it logged, used and made, its ledger and its findings."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from stoker.cli._stores import find_store
from stoker.doctor.report import run_table
from stoker.printing import print_answer
from stoker.tracking.store.plain_values import make_plain
from stoker.tracking.store.queries import open_reader


def configure(parser: argparse.ArgumentParser) -> None:
    """Which run."""
    parser.add_argument("run_id", metavar="ID", nargs="?", help="the run (the newest)")
    parser.add_argument(
        "--json", action="store_true", help="print everything as JSON", default=argparse.SUPPRESS
    )


def run(args: argparse.Namespace) -> int:
    """Print the run."""
    with open_reader(find_store(args)) as reader:
        row = reader.run(reader.resolve(args.run_id))
        shown: dict[str, Any] = {
            **row.to_dict(),
            "ledger": reader.ledger(row.id),
            "findings": reader.findings(row.id),
            "artifacts": [asdict(link) for link in reader.artifacts(row.id)],
        }
    if args.json:
        print_answer(json.dumps(make_plain(shown), indent=2))
    else:
        run_table.show_one(shown)
    return 0
