"""Draw a saved run again (the last one by default), or write it as JSON.

stoker report
stoker report 20261115-2107 --json -
"""

from __future__ import annotations

import argparse

from stoker.report import console, json_file
from stoker.store import files


def configure(parser: argparse.ArgumentParser) -> None:
    """`stoker report [ID] [--json PATH]`."""
    parser.add_argument("id", nargs="?", help="a run's id, or the beginning of one, or a record's file")
    parser.add_argument("--json", metavar="PATH", help="write the record there instead; - is stdout")


def run(args: argparse.Namespace) -> int:
    """Draw or write the record."""
    path = files.resolve(args.id)
    record = files.read(path)
    if args.json:
        json_file.write(record, args.json)
    else:
        console.show(record, path, to_stdout=True)
    return 0
