"""List runs."""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from typing import Any

from stoker.cli._options import read_store, read_store_option
from stoker.doctor.report import run_table
from stoker.errors import RecordError
from stoker.printing import print_answer, print_json
from stoker.tracking.store import address, measured, record_files
from stoker.tracking.store.queries import open_reader
from stoker.tracking.store.table import flatten, nest_rows, select_rows
from stoker.units import printable

# A column that only this list has, for runs of the store and for records alike.
FINDING = "finding"


def run(args: argparse.Namespace) -> int:
    """Print the table; a damaged record becomes a line that says so."""
    rows = _list_stored_runs(args)
    damaged: list[str] = []
    rows += _list_unstored_records({row["id"] for row in rows}, damaged)
    chosen = select_rows(rows, args.where, args.sort, args.limit)
    if args.json:
        print_json([_spell_out_numbers(row) for row in chosen])
    elif args.csv:
        _print_csv(chosen)
    else:
        columns = args.columns.split(",") if args.columns else None
        # Any other order was asked for, so it is kept.
        nested = nest_rows(chosen) if args.sort == "-started" else [(0, row) for row in chosen]
        run_table.show(nested, columns, damaged, filtered=bool(args.where))
    return 0


def _list_stored_runs(args: argparse.Namespace) -> list[dict[str, Any]]:
    if not read_store_option(args):
        usual = address.find()
        if usual is None or (usual.path is not None and not usual.path.exists()):
            return []
    with open_reader(read_store(args)) as reader:
        first = reader.first_findings()
        return [{**flatten(row), FINDING: first.get(row.id)} for row in reader.runs()]


def _list_unstored_records(known: set[str], damaged: list[str]) -> list[dict[str, Any]]:
    """List the records that the store does not have."""
    rows = []
    for run_id in reversed(record_files.ids()):
        if run_id in known:
            continue
        try:
            record = record_files.read(record_files.path_of(run_id))
        except RecordError as error:
            damaged.append(str(error))
            continue
        first = record.findings[0] if record.findings else None
        rows.append(
            {
                "id": record.id,
                "name": record.program,
                "kind": "run",
                "program": record.program,
                "arguments": " ".join(record.argv),
                "state": measured.name_state(record),
                "exit_code": record.exit_code,
                "started": measured.find_start(record) if record.started else _guess_start(record.id),
                "seconds": record.wall_s,
                "steps": record.steps,
                "steps_per_s": record.steps_per_s,
                FINDING: f"{first.kind} {first.file}:{first.line}" if first else None,
            }
        )
    return rows


def _guess_start(run_id: str) -> float:
    """Return when a record without a time was made: ids start with the time."""
    digits = "".join(sign for sign in run_id[:15] if sign.isdigit())
    return float(digits or 0) / 1e8


def _spell_out_numbers(row: dict[str, Any]) -> dict[str, Any]:
    """Replace numbers that JSON cannot hold with words."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def _print_csv(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # A file gets the text as stored; a terminal would obey some of its characters.
    whole = text.getvalue()
    print_answer(printable(whole, lines=True) if sys.stdout.isatty() else whole, end="")
