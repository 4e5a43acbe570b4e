"""List the runs of the store, newest first; show, compare, delete, import, export and verify them.

    stoker runs --where 'loss < 0.1' --where 'params.rate = 0.001' --sort loss
    stoker runs --columns loss,val_loss,params.rate --csv
    stoker runs show 20261115-2107
    stoker runs diff 20261115-2107 20261115-2112
    stoker runs import mlflow.db
    stoker runs export 20261115-2107 --tensorboard logs/
    stoker runs verify --head head.json

A run is named by its id or the beginning of it. A condition is NAME SIGN VALUE, where the sign is one of = != < <= > >=
and ~ (contains), and the name a column, a parameter or a series, whose last value counts. Records under .stoker/runs/
that the store does not have are listed too.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from stoker.cli._options import add_json, add_store
from stoker.errors import UsageError

# The actions on runs, each in a module of `_runs`. Without an action, the runs are listed.
ACTIONS = ("show", "diff", "delete", "import", "export", "head", "verify")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the list, and the actions."""
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        action="append",
        default=[],
        help="show only runs for which this holds; may be repeated",
    )
    parser.add_argument(
        "--sort",
        metavar="COLUMN",
        default="-started",
        help="sort by this; --sort=-COLUMN sorts from the largest down (-started)",
    )
    parser.add_argument("--limit", metavar="N", type=int, help="show at most this many")
    parser.add_argument(
        "--columns", metavar="NAMES", help="series, parameters or other columns to show, separated by commas"
    )
    add_json(parser, "print everything as JSON")
    parser.add_argument("--csv", action="store_true", help="print everything as CSV")
    add_store(parser)
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", help="show, diff, delete, import, export, head or verify"
    )
    for name in ACTIONS:
        module = _module(name)
        action = actions.add_parser(
            name, help=(module.__doc__ or "").splitlines()[0], description=module.__doc__
        )
        module.configure(action)
        add_store(action)


def run(args: argparse.Namespace) -> int:
    """Carry out the action, or list the runs."""
    if args.limit is not None and args.limit < 0:
        raise UsageError(f"--limit {args.limit} must be at least 0")
    return int(_module(args.action or "list").run(args))


def _module(action: str) -> Any:
    return importlib.import_module(f"stoker.cli._runs.{action}_runs")
