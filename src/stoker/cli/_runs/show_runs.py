"""Show a run: what it was, what it logged, used and made, its ledger and its findings."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from stoker.cli._options import add_json, read_store
from stoker.doctor.report import run_table
from stoker.printing import print_json
from stoker.tracking.store.plain_values import make_plain
from stoker.tracking.store.queries import open_reader


def configure(parser: argparse.ArgumentParser) -> None:
    """Which run."""
    parser.add_argument("run_id", metavar="ID", nargs="?", help="the run (the newest)")
    add_json(parser, "print everything as JSON", inherits=True)


def run(args: argparse.Namespace) -> int:
    """Print the run."""
    with open_reader(read_store(args)) as reader:
        row = reader.run(reader.resolve(args.run_id))
        shown: dict[str, Any] = {
            **row.to_dict(),
            "ledger": reader.ledger(row.id),
            "findings": reader.findings(row.id),
            "artifacts": [asdict(link) for link in reader.artifacts(row.id)],
        }
    if args.json:
        print_json(make_plain(shown))
    else:
        run_table.show_one(shown)
    return 0
