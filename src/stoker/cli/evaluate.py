"""Score a bundle on labelled rows: the scores of the recipe's report, with 95 % intervals.

    stoker evaluate runs/latest/bundle held_out.csv
    stoker evaluate bundle/ held_out.csv --target price --json
    stoker evaluate bundle/ photos/

Labels are in the target's column, or are the names of the folders. Exit code: 0; 2 if there is no bundle, no labelled
row, or a row cannot be answered.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from stoker.cli._bulk import add_rows, open_predictor, read_rows
from stoker.cli._options import add_json
from stoker.cli._spelling import as_options
from stoker.errors import UsageError
from stoker.printing import print_answer
from stoker.serve.table_cells import is_table
from stoker.units import counted

_NAMED = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker evaluate`."""
    add_rows(parser)
    parser.add_argument("--target", metavar="COLUMN", help="the column of the labels (that of the training)")
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
    with as_options(args):
        found = evaluate_rows(
            predictor, read_rows(args, predictor), target, balanced=bool(lineage.get("balanced"))
        )
    if args.json:
        print_answer(json.dumps(dataclasses.asdict(found)))
        return 0
    for name, score in found.scores.items():
        print_answer(f"{name:<18} {score}")
    print_answer(f"{counted(found.rows, 'row')}")
    if found.unlabelled:
        print_answer(f"{counted(found.unlabelled, 'row')} without a label left out")
    if found.unknown:
        names = ", ".join(repr(name) for name in list(found.unknown)[:_NAMED])
        count = sum(found.unknown.values())
        print_answer(f"{counted(count, 'row')} left out whose label is no class of the model: {names}")
    return 0
