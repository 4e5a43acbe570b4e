"""Import runs: records without a store, TensorBoard's event files, MLflow's runs. No run is imported twice.

SOURCE is a directory of records (.stoker/runs), a directory of event files, a directory of mlruns, MLflow's database
(mlflow.db, or its URL), or the http:// URL of MLflow's server.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from stoker.cli._options import read_store_option
from stoker.errors import UsageError
from stoker.files import RUNS
from stoker.printing import print_answer, print_note
from stoker.tracking.store import address
from stoker.tracking.store.importing import mlflow, records, tensorboard
from stoker.tracking.store.importing.imported_run import ImportedRun, import_runs
from stoker.units import quantity


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the source to import from."""
    parser.add_argument(
        "source", metavar="SOURCE", nargs="?", default=str(RUNS), help=f"where they are ({RUNS})"
    )


def run(args: argparse.Namespace) -> int:
    """Import the runs, and say how many there were."""
    store = address.require(read_store_option(args))
    damaged: list[str] = []
    kept = list(import_runs(store, _read_runs(args.source, damaged)))
    fresh = sum(is_new for _, is_new in kept)
    for line in damaged:
        print_note(line)
    known = len(kept) - fresh
    print_answer(
        f"{quantity(fresh, 'run')} imported into {store}"
        + (f", {known} {'was' if known == 1 else 'were'} there already" if known else "")
    )
    return 0


def _read_runs(source: str, damaged: list[str]) -> Iterator[ImportedRun]:
    path = Path(source)
    if source.startswith(("http://", "https://")):
        return mlflow.read_server(source)
    if "://" in source:
        return mlflow.read_database(source)
    if path.is_file():
        return mlflow.read_database(f"sqlite:///{path}")
    if not path.is_dir():
        raise UsageError(f"no such file or directory: {source}")
    if any(path.glob("*.json")):
        return records.read_runs(path, damaged)
    if tensorboard.has_runs(path):
        return tensorboard.read_runs(path)
    if next(path.rglob("meta.yaml"), None) is not None:
        return mlflow.read_directory(path)
    raise UsageError(f"{source} has neither records nor event files nor MLflow's runs")
