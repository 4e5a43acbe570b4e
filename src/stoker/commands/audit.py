"""Show the audit of the store, or verify it: its chain, and the content of every artifact.

    stoker audit
    stoker audit --verify

With --verify, a changed or missing row of the audit, a run or a link that is missing, and a file that was replaced or
is gone are named, one line each. Exit code: 0 if all is as it was written, 1 if not, 2 for a bad request.
"""

from __future__ import annotations

import argparse
import json

from stoker.commands.runs import add_store
from stoker.report import run_table
from stoker.store import address
from stoker.store.queries import reading
from stoker.store.verifying import verify
from stoker.units import printable


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker audit`."""
    parser.add_argument("--verify", action="store_true", help="walk the chain, and hash every artifact again")
    parser.add_argument("--json", action="store_true", help="print JSON instead")
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Show, or verify and judge by the exit code."""
    store = address.needed(getattr(args, "store", None))
    if not args.verify:
        with reading(store) as reader:
            rows = [row._asdict() for row in reader.audit()]
        if args.json:
            print(json.dumps(rows, indent=2))
        else:
            run_table.show_audit(rows)
        return 0
    found = verify(store)
    if args.json:
        print(json.dumps({"rows": found.rows, "files": found.files, "problems": found.problems}, indent=2))
    elif found.problems:
        print("\n".join(map(printable, found.problems)))
    else:
        print(f"the audit is whole: {found.rows} rows, {found.files} files as they were written")
    return 1 if found.problems else 0
