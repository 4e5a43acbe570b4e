"""Export runs: to MLflow's server, to TensorBoard's event files, to a CSV or Parquet file with every point."""

from __future__ import annotations

import argparse
from pathlib import Path

from stoker.cli._options import local_path, read_store
from stoker.errors import UsageError
from stoker.printing import print_answer
from stoker.tracking.store.exporting import mlflow, tables, tensorboard
from stoker.tracking.store.queries import open_reader
from stoker.units import quantity


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the runs to export, and where they go."""
    parser.add_argument("run_ids", metavar="ID", nargs="*", help="a run (all)")
    parser.add_argument("--mlflow", metavar="URL", help="the http:// URL of MLflow's server")
    parser.add_argument("--experiment", metavar="NAME", default="stoker", help="MLflow's experiment (stoker)")
    parser.add_argument("--tensorboard", type=local_path, metavar="DIR", help="a directory for event files")
    parser.add_argument("--table", type=local_path, metavar="PATH", help="a file: .csv or .parquet")


def run(args: argparse.Namespace) -> int:
    """Export the runs, and say what was written."""
    if not (args.mlflow or args.tensorboard or args.table):
        raise UsageError("name a destination: --mlflow URL, --tensorboard DIR or --table PATH")
    with open_reader(read_store(args)) as reader:
        names = [reader.resolve(name) for name in args.run_ids]
        rows = reader.runs(*names)
        if args.mlflow:
            made = mlflow.export(reader, rows, args.mlflow, args.experiment)
            print_answer(
                f"{quantity(len(made), 'run')} in the experiment {args.experiment!r} of {args.mlflow}"
            )
        if args.tensorboard:
            files = tensorboard.export(reader, rows, Path(args.tensorboard))
            print_answer(f"{quantity(len(files), 'run')} in {args.tensorboard}")
        if args.table:
            print_answer(f"{quantity(len(rows), 'run')} in {tables.export(reader, rows, Path(args.table))}")
    return 0
