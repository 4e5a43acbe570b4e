"""Train a model on a table, texts or images, compare it with baselines, and export it.

    stoker train table sales.csv --target price
    stoker train text reviews/
    stoker train image photos/ --base MobileNetV2
    stoker serve runs/latest

Run the same command again to resume after a crash. Ctrl-C keeps the best model so far. Exit code: 0;
2 if the data or the request makes no sense; 130 if Ctrl-C came when nothing was being trained.
"""

from __future__ import annotations

import argparse
from typing import Any

from stoker import clock
from stoker.chatter import quiet_tensorflow
from stoker.cli._options import add_csv, data_path, local_path, output_path
from stoker.cli._spelling import print_warnings, respell_errors
from stoker.errors import UsageError
from stoker.printing import print_answer, print_note

# The code with which a shell reports a program that Ctrl-C has ended.
_INTERRUPTED = 130
_TEXT = """Learn the classes of texts: a folder with a folder of .txt files for each class, or a column of a table."""
_IMAGE = """Learn the classes of images: a folder with a folder of images for each class."""
_TABLE = """Learn to predict a column of a CSV, Parquet or JSON lines table."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the kinds of data, and their options."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True, help="table, text or image")
    table = kinds.add_parser("table", help=_TABLE, description=_TABLE)
    table.add_argument("data", type=data_path, metavar="DATA", help="a file, a glob or a folder")
    table.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    table.add_argument(
        "--columns", metavar="NAMES", help="the columns to learn from, separated by commas (all)"
    )
    table.add_argument(
        "--task", choices=("classes", "numbers"), help="what the target holds, if Stoker guesses wrong"
    )
    table.add_argument("--exclude", metavar="NAMES", help="columns not to learn from, separated by commas")
    table.add_argument(
        "--types",
        metavar="COLUMN=KIND",
        help="kinds of columns, separated by commas: number, whole, truth, category, text or date",
    )
    add_csv(table, None, "detected")
    table.add_argument(
        "--missing",
        "--na",
        metavar="TEXTS",
        help="cells that stand for a missing value, separated by commas, such as '?,n.a.'",
    )
    _add_only(table, ("network", "linear", "trees"))
    table.add_argument(
        "--all-rows",
        action="store_true",
        help="once the model is chosen and scored, train it again on all rows for the bundle",
    )
    table.add_argument(
        "--strict",
        action="store_true",
        help="refuse unreadable cells, uneven rows and rows without a target instead of leaving them out",
    )
    _add_dividing(table)
    _add_rest(table)
    text = kinds.add_parser("text", help=_TEXT, description=_TEXT)
    text.add_argument("data", type=data_path, metavar="DATA", help="a folder; with --column, a table")
    text.add_argument("--column", metavar="COLUMN", help="the column of a table that holds the texts")
    text.add_argument("--target", metavar="COLUMN", help="the column of their classes")
    add_csv(text, None)
    _add_only(text, ("network", "linear"))
    _add_dividing(text)
    _add_rest(text)
    image = kinds.add_parser("image", help=_IMAGE, description=_IMAGE)
    image.add_argument("data", type=data_path, metavar="DATA", help="a folder with a folder for each class")
    image.add_argument("--size", metavar="HxW", help="height and width to resize the images to (their own)")
    image.add_argument(
        "--base", metavar="MODEL", help="start from a model in keras.applications, such as MobileNetV2"
    )
    image.add_argument(
        "--weights",
        type=local_path,
        metavar="FILE",
        help="a file with the base's weights, if not those that Keras downloads",
    )
    image.add_argument(
        "--augment",
        metavar="NAMES",
        help="augmentations of training images, separated by commas; 'none' for none (chosen by their colours)",
    )
    _add_only(image, ("network", "linear"))
    _add_rest(image)


def _add_only(parser: argparse.ArgumentParser, models: tuple[str, ...]) -> None:
    parser.add_argument(
        "--only",
        choices=models,
        help="export this model, even if another one is better (the best on the validation rows)",
    )


def _add_dividing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--group",
        metavar="COLUMN",
        help="hold out rows with the same value together, such as those of one customer",
    )
    parser.add_argument(
        "--time-column", metavar="COLUMN", help="hold out the latest rows, by this column of dates or numbers"
    )


def _add_rest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epochs", type=int, metavar="N", help="the most epochs to train")
    parser.add_argument(
        "--time",
        metavar="DURATION",
        help="how long everything may take, such as 10m",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed of the split, the order and the initial weights (0)"
    )
    parser.add_argument(
        "--runs", type=local_path, default="runs", metavar="DIRECTORY", help="the directory for runs (runs)"
    )
    parser.add_argument("--name", help="the name of this run's directory (derived from the request)")
    parser.add_argument("--fresh", action="store_true", help="start over, even if this was trained before")
    parser.add_argument(
        "--eject", type=output_path, metavar="FILE", help="write the program to a file instead of training"
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file of --eject")


def run(args: argparse.Namespace) -> int:
    """Train, or eject the program."""
    args.started_ns = clock.now_ns()
    try:
        made = _run_recipe(args)
    except KeyboardInterrupt:
        # During training, Ctrl-C keeps the best model so far, and does not lead here.
        print_note("\nstoker: interrupted; run the same command again to resume", prefix="")
        return _INTERRUPTED
    if made is None:
        print_answer(f"stoker: {args.eject} written: run it with python, and change it as you like")
    return 0


def _run_recipe(args: argparse.Namespace) -> Any:
    options: dict[str, Any] = {
        name: getattr(args, name) for name in ("epochs", "time", "seed", "runs", "name", "fresh", "eject")
    }
    options["started_ns"] = args.started_ns
    try:
        with quiet_tensorflow():
            import tensorflow  # noqa: F401
        recipe = _recipe(args, {**options, "overwrite": args.force})
    except ModuleNotFoundError as error:
        extra = "data" if str(error.name).startswith("pyarrow") else "cpu"
        raise UsageError(
            f"stoker train needs {error.name}: install it with pip install 'stoker[{extra},recipes]'"
        ) from None
    with respell_errors(args), print_warnings(args, lambda line: print_answer(f"stoker: {line}")):
        return recipe()


def _recipe(args: argparse.Namespace, options: dict[str, Any]) -> Any:
    """Return the recipe that was asked for, ready to be called."""
    import functools

    from stoker import recipes

    options["only"] = args.only
    if args.kind != "image":
        options |= {"group": args.group, "time_column": args.time_column}
        options |= {"sep": args.sep, "encoding": args.encoding}
    if args.kind == "table":
        columns = None if args.columns is None else [name.strip() for name in args.columns.split(",")]
        options["missing"] = () if args.missing is None else tuple(args.missing.split(","))
        options["exclude"] = _names(args.exclude)
        options["types"] = _types(args.types)
        options["strict"] = args.strict
        options["all_rows"] = args.all_rows
        return functools.partial(
            recipes.table, args.data, args.target, task=args.task, columns=columns, **options
        )
    if args.kind == "text":
        return functools.partial(recipes.text, args.data, column=args.column, target=args.target, **options)
    augment = None if args.augment is None else [one for one in args.augment.split(",") if one != "none"]
    return functools.partial(
        recipes.image,
        args.data,
        size=_size(args.size),
        base=args.base,
        weights=args.weights,
        augment=augment,
        **options,
    )


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(","))


def _types(text: str | None) -> dict[str, str]:
    pairs = [one.rpartition("=") for one in _names(text)]
    wrong = next((kind for name, _, kind in pairs if not name), None)
    if wrong is not None:
        raise UsageError(f"--types {text}: give COLUMN=KIND, such as day=date")
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() and int(part) for part in parts):
        raise UsageError(f"--size {text} must be HEIGHTxWIDTH, such as 160x160")
    return int(parts[0]), int(parts[-1])
