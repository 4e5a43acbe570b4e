"""Compare two runs: code, data, parameters, versions, and the effect on loss and speed."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from stoker.cli._options import add_json, read_store
from stoker.doctor.report import run_table
from stoker.printing import print_json
from stoker.tracking.store.differing import diff
from stoker.tracking.store.plain_values import make_plain
from stoker.tracking.store.queries import open_reader


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the two runs to compare."""
    parser.add_argument("a", metavar="A", help="the run to compare with")
    parser.add_argument("b", metavar="B", help="the other")
    add_json(parser, inherits=True)


def run(args: argparse.Namespace) -> int:
    """Print what differs."""
    with open_reader(read_store(args)) as reader:
        found = diff(reader, reader.resolve(args.a), reader.resolve(args.b))
    if args.json:
        print_json(make_plain(asdict(found)))
    else:
        run_table.show_differences(found)
    return 0
