"""Compare two runs, or several runs per side: throughput, accounts, findings gone and new.

    stoker compare 20261115-2107 20261115-2112
    stoker compare before.json after.json --html compare.html
    stoker compare A1,A2,A3 B1,B2,B3 --fail-if-slower 5%

A side is a run's id, the beginning of one, latest, or a record's file; commas separate several. The verdict takes
noise into account: between the steps of a run, as measured, and between runs, as several runs per side show it (one
run per side shows none, so --noise is assumed). A run that crashed is not judged by its speed: the verdict is that it
failed. Exit code: 0; 1 if --fail-if-slower is given and B failed, or is slower by more than that with 95 % confidence;
3 if A failed, or B looks slower by more than that, but it takes more runs to be sure; 2 for a bad request or a damaged
record.
"""

from __future__ import annotations

import argparse
from typing import Any

from stoker.cli._options import add_json, local_path, read_percentage
from stoker.cli._records import find_record
from stoker.doctor.diagnosis.comparison import Comparison, changes, compare
from stoker.doctor.diagnosis.noise import ASSUMED_RUN_NOISE
from stoker.doctor.report import comparison, output
from stoker.errors import RecordError, UsageError
from stoker.printing import print_json, print_note
from stoker.records import Record
from stoker.tracking.store import record_files

# The exit code if B looks too slow, but noise may be the reason.
_UNDECIDED = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker compare`."""
    parser.add_argument(
        "a", metavar="A", help="a run, or several separated by commas: the side to compare with"
    )
    parser.add_argument("b", metavar="B", help="the side to judge")
    parser.add_argument(
        "--html", type=local_path, metavar="PATH", help="write a self-contained page to PATH instead"
    )
    add_json(parser)
    parser.add_argument(
        "--fail-if-slower",
        metavar="PERCENT",
        help="exit with 1 if B is slower by more than this, such as 5%%, with 3 if that is undecided",
    )
    parser.add_argument(
        "--noise", metavar="PERCENT", help="noise between runs, assumed until several runs show it (3%%)"
    )


def run(args: argparse.Namespace) -> int:
    """Compare the runs and report; if asked to, give the verdict as the exit code."""
    limit = read_percentage(args.fail_if_slower, "--fail-if-slower") if args.fail_if_slower else None
    noise = read_percentage(args.noise, "--noise") if args.noise else ASSUMED_RUN_NOISE
    a, b = _side(args.a), _side(args.b)
    both = {record.id for record in a} & {record.id for record in b}
    if both:
        raise UsageError(f"run {sorted(both)[0]} is on both sides: a run cannot be compared with itself")
    try:
        result, found = compare(a, b, noise), changes(a, b)
        as_json: dict[str, Any] = comparison.as_json(a, b, result, found)
    except (ValueError, ArithmeticError) as error:
        raise RecordError(f"these records cannot be compared ({error}): `stoker runs` lists others") from None
    if args.html:
        output.write(args.html, comparison.page(a, b, result, found))
    if args.json:
        print_json(as_json)
    elif not args.html:
        comparison.show(a, b, result, found)
    return 0 if limit is None else _judge(result, limit)


def _judge(result: Comparison, limit: float) -> int:
    """Return the exit code for CI. A result that only looks slower must neither pass in silence nor count as proven."""
    if any(result.failed):
        print_note(comparison.failed_words(result))
        return 1 if result.failed[1] else _UNDECIDED
    if result.is_slower_than(limit):
        return 1
    if result.may_be_slower_than(limit):
        print_note(comparison.undecided_words(result, limit))
        return _UNDECIDED
    return 0


def _side(text: str) -> list[Record]:
    names = [name for name in text.split(",") if name]
    if not names:
        raise UsageError("a side names no run: give an id, or several separated by commas")
    paths = [find_record(name) for name in names]
    if len(set(paths)) < len(paths):
        raise UsageError(f"{text} names a run twice")
    return [record_files.read(path) for path in paths]
