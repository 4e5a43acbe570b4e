"""Make a bundle of a saved Keras model: pinned names and types, proven in a process of its own.

    stoker export model.keras bundle/
    stoker export model.keras bundle/ --labels cat,dog --force

Without examples a few rows are drawn from what is known of the inputs. Exit code: 0; 2 if the model cannot be
exported, in which case nothing is left.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

from stoker import units
from stoker.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker export`."""
    parser.add_argument("model", metavar="MODEL", help="a .keras file")
    parser.add_argument("bundle", metavar="BUNDLE", help="the directory to make")
    parser.add_argument("--labels", metavar="NAMES", help="what the classes are called, separated by commas")
    parser.add_argument("--examples", metavar="FILE", help="rows to record: JSON lines, or one .npy array")
    parser.add_argument("--force", action="store_true", help="replace a bundle that is there")


def run(args: argparse.Namespace) -> int:
    """Load, export, say what came of it."""
    file = Path(args.model)
    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    examples = None if args.examples is None else _rows(Path(args.examples))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import keras
    except ModuleNotFoundError as error:
        raise UsageError(
            f"stoker export needs {error.name}: install it with pip install 'stoker[cpu]'"
        ) from None
    from stoker.serve.export.writing import export

    try:
        with warnings.catch_warnings():
            # Its loss says whether it gives logits; the state of its optimizer is of no interest here.
            warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
            model = keras.models.load_model(file, safe_mode=True)
    except (ValueError, TypeError, OSError, KeyError) as error:
        line = str(error).strip().splitlines()[0]
        raise UsageError(f"{file} cannot be loaded: {line}") from None
    labels = None if args.labels is None else [word.strip() for word in args.labels.split(",")]
    made = export(
        model,
        args.bundle,
        labels=labels,
        examples=examples,
        lineage={"model": file.name},
        overwrite=args.force,
    )
    print(f"{args.bundle}: {units.size(made.bytes)}, proven on {made.description['examples']['rows']} rows")
    return 0


def _rows(file: Path) -> Any:
    import numpy as np

    try:
        if file.suffix == ".npy":
            return np.load(file, allow_pickle=False)
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
