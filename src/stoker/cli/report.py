"""Show a saved run again (the last one by default): on the terminal, as a page, as a trace or as JSON.

stoker report
stoker report 20261115-2107 --html run.html
stoker report --trace run.trace.json
stoker report --json -
"""

from __future__ import annotations

import argparse

from stoker.cli._options import local_path
from stoker.cli._records import find_record
from stoker.doctor.report import console, output, trace
from stoker.doctor.report.page import document
from stoker.tracking.store import record_files


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker report [ID] [--html PATH] [--trace PATH] [--json PATH]`."""
    parser.add_argument(
        "id", type=local_path, nargs="?", help="a run's id, the beginning of one, latest, or a record's file"
    )
    parser.add_argument(
        "--html", type=local_path, metavar="PATH", help="write one self-contained page to PATH instead"
    )
    parser.add_argument(
        "--trace",
        type=local_path,
        metavar="PATH",
        help="write a trace for Perfetto or chrome://tracing to PATH",
    )
    parser.add_argument(
        "--json", type=local_path, metavar="PATH", help="write the record to PATH instead; - is stdout"
    )


def run(args: argparse.Namespace) -> int:
    """Draw or write the record."""
    path = find_record(args.id)
    record = record_files.read(path)
    if args.html:
        output.write(args.html, document.page(record))
    if args.trace:
        trace.write(record, record_files.read_events(path), args.trace)
    if args.json:
        output.write_record(args.json, record)
    if not (args.html or args.trace or args.json):
        console.show(record, path, to_stdout=True)
    return 0
