"""Delete runs: their values and their records, never their audit.

--artifacts also deletes the files that a run made, if they still have the recorded content, are not older than the run
and belong to no other run. Files that stay are listed with the reason. On a terminal the command asks first; elsewhere,
--artifacts needs --yes.
"""

from __future__ import annotations

import argparse
import sys

from stoker.cli._options import read_store
from stoker.errors import UsageError
from stoker.printing import print_answer, print_note
from stoker.tracking.store.deleting import Deletion, carry_out, plan
from stoker.units import printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which runs to delete."""
    parser.add_argument("run_ids", metavar="ID", nargs="+", help="a run")
    parser.add_argument(
        "--artifacts", action="store_true", help="also delete the files that only this run made"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(args: argparse.Namespace) -> int:
    """Delete the runs, and say what was deleted."""
    store = read_store(args)
    asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
    if args.artifacts and not args.yes and not asks:
        raise UsageError("--artifacts deletes files and cannot ask for confirmation here: add --yes")
    for name in args.run_ids:
        planned = plan(store, name, artifacts=args.artifacts)
        if asks and not _confirm(planned):
            print_answer(f"kept {printable(planned.run)}")
            continue
        carry_out(store, planned)
        print_answer(printable(f"deleted {planned.run}"))
        for line in [*map(str, planned.files), *(f"left {line}" for line in planned.left)]:
            print_answer(f"  {printable(line)}")
    return 0


def _confirm(planned: Deletion) -> bool:
    """Ask for confirmation on the terminal."""
    files = "".join(f"\n  {path}" for path in planned.files)
    question = printable(f"Delete run {planned.run} ({planned.name})?") + printable(files, lines=True)
    print_note(f"{question}\n[y/N] ", prefix="", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
