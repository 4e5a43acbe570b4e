"""Score a bundle on labelled rows: the scores of the recipe's report, with 95 % intervals.

    stoker evaluate runs/latest/bundle held_out.csv
    stoker evaluate bundle/ held_out.csv --target price --json
    stoker evaluate bundle/ photos/

Labels are in the target's column, or are the names of the folders. Files are read as the training file was: a title
above the header is passed over, a total at the end is left out. Exit code: 0; 2 if there is no bundle, no labelled row,
or a row cannot be answered.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from stoker.cli._bulk import add_rows, open_predictor, read_rows
from stoker.cli._options import add_json
from stoker.cli._spelling import respell_errors
from stoker.errors import UsageError
from stoker.printing import print_answer
from stoker.serve.table_cells import is_table
from stoker.units import quantity

_NAMED = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker evaluate`."""
    add_rows(parser)
    parser.add_argument("--target", metavar="COLUMN", help="the column of the labels (the one from training)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Score all rows."""
    predictor = open_predictor(args)
    from stoker.recipes.evaluating import evaluate_rows

    lineage = predictor.bundle.description.get("lineage", {})
    target = args.target or lineage.get("target")
    if Path(args.rows).is_dir() and args.target is None and not is_table(predictor.bundle.signature.inputs):
        target = None
    elif target is None:
        raise UsageError("the bundle does not say which column holds the labels: name it with --target")
    with respell_errors(args):
        chunks, _ = read_rows(args, predictor)
        found = evaluate_rows(predictor, chunks, target, balanced=bool(lineage.get("balanced")))
    if args.json:
        print_answer(json.dumps(dataclasses.asdict(found)))
        return 0
    for name, score in found.scores.items():
        print_answer(f"{name:<18} {score}")
    print_answer(f"{quantity(found.rows, 'row')}")
    if _is_same_file(args.rows, lineage.get("data")):
        print_answer("The model was trained on these rows. Its report has scores for rows it has not seen.")
    for why, count in found.left_out.items():
        print_answer(f"{quantity(count, 'row')} left out: {why}")
    if found.unlabelled:
        print_answer(f"{quantity(found.unlabelled, 'row')} without a label left out")
    if found.unknown:
        names = ", ".join(repr(name) for name in list(found.unknown)[:_NAMED])
        count = sum(found.unknown.values())
        print_answer(f"{quantity(count, 'row')} left out: the model has no class {names}")
    return 0


def _is_same_file(rows: str, trained_from: object) -> bool:
    """Return whether these are the rows from which the bundle was made, judged by the paths."""
    return isinstance(trained_from, str) and Path(rows).resolve() == Path(trained_from).resolve()
