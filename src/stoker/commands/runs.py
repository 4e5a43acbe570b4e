"""List the runs kept under .stoker/runs/, newest first."""

from __future__ import annotations

import argparse

from stoker.errors import RecordError
from stoker.report import console
from stoker.store import record_files


def configure(parser: argparse.ArgumentParser) -> None:
    """`stoker runs` has no options."""


def run(args: argparse.Namespace) -> int:
    """Print the table; a damaged record is a row that says so."""
    records, damaged = [], []
    for run_id in reversed(record_files.ids()):
        try:
            records.append(record_files.read(record_files.path_of(run_id)))
        except RecordError as error:
            damaged.append(str(error))
    console.show_runs(records, damaged)
    return 0
