"""Delete runs: their values and their records, never their audit."""

from __future__ import annotations

import argparse

from stoker.store import address
from stoker.store.deleting import delete


def configure(parser: argparse.ArgumentParser) -> None:
    """Which runs."""
    parser.add_argument("run_ids", metavar="ID", nargs="+", help="a run")
    parser.add_argument("--artifacts", action="store_true", help="also the files that only this run has made")


def run(args: argparse.Namespace) -> int:
    """Delete, and say what is gone."""
    store = address.needed(getattr(args, "store", None))
    for name in args.run_ids:
        files = delete(store, name, artifacts=args.artifacts)
        print(f"deleted {name}" + "".join(f"\n  {path}" for path in files))
    return 0
