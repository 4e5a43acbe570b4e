"""Make a bundle from a saved Keras model or from a run: pinned names and types, proven in a new process.

    stoker export model.keras bundle/
    stoker export 20261115-2107 bundle/ --engine litert
    stoker export model.keras bundle/ --labels cat,dog --force

Name a run by its id or the beginning of it; its model is the .keras file it made last. Without --examples, a few rows
are made up from the input signature. Exit code: 0; 2 if the model cannot be exported, in which case nothing is left
behind.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zipfile
import zlib
from pathlib import Path

from stoker import units
from stoker.chatter import quiet_tensorflow
from stoker.cli._options import add_store, any_path, local_path, read_store_option
from stoker.cli._trust import add_allow_ops, split_names
from stoker.errors import RecordError, UsageError, first_line
from stoker.printing import print_answer
from stoker.serve.safety.keras_files import CodeInFileError, check_keras_file
from stoker.serve.saved_models import SavedModel, model_of
from stoker.tf_internals.types import Model
from stoker.tracking.store import address

# What Keras raises for a file that is damaged or not a model: it has no error of its own for this, so its code fails in
# various ways.
_LOAD_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker export`."""
    parser.add_argument(
        "model", type=local_path, metavar="MODEL", help="a .keras file, or a run of the store"
    )
    parser.add_argument(
        "bundle", type=any_path, metavar="BUNDLE", help="the directory to make; a path or a URL"
    )
    parser.add_argument("--labels", metavar="NAMES", help="the names of the classes, separated by commas")
    parser.add_argument(
        "--examples", type=local_path, metavar="FILE", help="rows to record: JSON lines, or one .npy array"
    )
    parser.add_argument(
        "--engine",
        action="append",
        default=[],
        choices=["litert", "onnx"],
        help="also convert for this engine; may be repeated",
    )
    smaller = parser.add_mutually_exclusive_group()
    smaller.add_argument(
        "--int8",
        dest="quantize",
        action="store_const",
        const="int8",
        default="",
        help="also convert for LiteRT with 8-bit integers, within --bound",
    )
    smaller.add_argument(
        "--float16",
        dest="quantize",
        action="store_const",
        const="float16",
        help="also convert for LiteRT with 16-bit weights, within --bound",
    )
    parser.add_argument(
        "--calibrate",
        type=local_path,
        metavar="FILE",
        help="real rows for --int8 and --float16, at least 20: JSON lines, or one .npy array (those of --examples)",
    )
    parser.add_argument(
        "--bound",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="how far their answers may be off, as a share of an output's largest value (0.01)",
    )
    parser.add_argument(
        "--sign", type=local_path, metavar="KEY", help="sign the bundle with this private key"
    )
    add_allow_ops(parser)
    add_store(parser)
    parser.add_argument("--force", action="store_true", help="replace an existing bundle")


def run(args: argparse.Namespace) -> int:
    """Load the model, export it, and report the outcome."""
    url = read_store_option(args)
    given = _model(args.model, url)
    examples = None if args.examples is None else _rows(Path(args.examples))
    model = _load(given.file)
    from stoker.serve.export.writing import export

    labels = given.labels if args.labels is None else [word.strip() for word in args.labels.split(",")]
    made = export(
        model,
        args.bundle,
        labels=labels,
        examples=examples,
        lineage={"model": given.file.name},
        run=given.run or None,
        store=url,
        engines=args.engine,
        quantize=args.quantize,
        calibrate=None if args.calibrate is None else _rows(Path(args.calibrate)),
        bound=args.bound,
        sign=args.sign,
        allow_ops=split_names(args.allow_ops),
        overwrite=args.force,
    )
    rows = units.quantity(made.description["examples"]["rows"], "row")
    print_answer(f"{args.bundle}: {units.size(made.bytes)}, proven on {rows}")
    quantized = made.description["engines"].get("litert", {}).get("quantized")
    if quantized:
        from stoker.serve.export.quantizing import describe

        print_answer(describe(quantized))
    return 0


def _load(file: Path) -> Model:
    """Load a model from its file.

    Raises:
        UsageError: the file would run code, or is damaged.
    """
    try:
        with quiet_tensorflow():
            import keras
            import tensorflow
    except ModuleNotFoundError as error:
        raise UsageError(
            f"stoker export needs {error.name}: install it with pip install 'stoker[cpu]'"
        ) from None
    try:
        check_keras_file(file)
        with warnings.catch_warnings():
            # The compiled loss says whether the model gives logits; the state of the optimizer is of no interest here.
            warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
            return keras.models.load_model(file, safe_mode=True)
    except CodeInFileError as error:
        raise UsageError(
            f"{file} cannot be loaded: {error}; export it from the program that made it, with stoker.export(model, ...)"
        ) from None
    except (*_LOAD_ERRORS, tensorflow.errors.OpError) as error:
        raise UsageError(f"{file} cannot be loaded: {first_line(error)}") from None


def _model(word: str, url: str | None) -> SavedModel:
    """Find the model: a file if there is one, otherwise a run's."""
    file = Path(word)
    if file.is_file():
        return SavedModel("", file)
    if file.is_dir():
        inside = next(iter(sorted(file.rglob("*.keras"))), None)
        example = f", such as {inside}" if inside is not None else ""
        raise UsageError(f"{file} is a directory: name a .keras file{example}, or a run's id")
    store = address.find(url)
    if file.suffix or len(file.parts) > 1 or store is None:
        raise UsageError(f"there is no file {file}")
    try:
        return model_of(store, word)
    except RecordError as error:
        raise UsageError(f"there is no file {file}, and {error}") from None


def _rows(file: Path) -> object:
    import numpy as np

    try:
        if file.suffix == ".npy":
            return np.load(file, allow_pickle=False)
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
