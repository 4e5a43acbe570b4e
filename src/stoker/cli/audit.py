"""Show the audit of the store, or verify it: its chain, the runs that have ended, the content of every artifact.

    stoker audit
    stoker audit --verify

--verify is `stoker runs verify`: everything that has changed since it was written is named, one line each. Exit code:
0 if nothing has changed, 1 if something has, 2 for a bad request.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from stoker.cli._options import add_json, add_store, read_store
from stoker.cli._runs import verify_runs
from stoker.doctor.report import run_table
from stoker.printing import print_json
from stoker.tracking.store.queries import open_reader


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker audit`."""
    parser.add_argument("--verify", action="store_true", help="check the chain and hash every artifact again")
    verify_runs.add_anchor(parser)
    add_json(parser)
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Show the audit; or verify it, and give the verdict as the exit code."""
    if args.verify or args.head or args.key:
        return verify_runs.run(args)
    with open_reader(read_store(args)) as reader:
        rows = [asdict(row) for row in reader.audit()]
    if args.json:
        print_json(rows)
    else:
        run_table.show_audit(rows)
    return 0
