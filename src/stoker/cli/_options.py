"""Options that several commands have, each declared once: paths, `--store`, `--json`, CSV files, the program to run."""

from __future__ import annotations

import argparse
import glob
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import storage
from stoker.errors import ArgumentError, UsageError, check_local_path

if TYPE_CHECKING:
    from stoker.goodput.ledger import Price
    from stoker.tracking.store.address import Address


def local_path(text: str) -> str:
    """Return the path; refuse the address of a bucket or a server before anything begins."""
    try:
        check_local_path(text)
    except ArgumentError as error:
        # argparse would replace the message of a ValueError.
        raise UsageError(str(error)) from None
    return text


def output_path(text: str) -> str:
    """Return the path of a file to write; refuse one that cannot be written, before anything begins."""
    target = Path(local_path(text))
    parent = target.absolute().parent
    if target.is_dir():
        raise UsageError(f"cannot write {text}: it is a directory; name a file in it")
    if not parent.is_dir():
        raise UsageError(f"cannot write {text}: there is no directory {target.parent}; make it first")
    if not os.access(parent, os.W_OK):
        raise UsageError(f"cannot write {text}: the directory {target.parent} is not writable")
    return text


def any_path(text: str) -> str:
    """Return a path, or a URL that `stoker.storage` reads."""
    return text if storage.is_url(text) else local_path(text)


def data_path(text: str) -> str:
    """Return a file, folder or glob that exists; this is checked before TensorFlow takes seconds to load.

    A URL is not checked until it is read.
    """
    if storage.is_url(text):
        return text
    local_path(text)
    path = os.path.expanduser(text)
    if not os.path.exists(path) and not glob.glob(path, recursive=True):
        raise UsageError(f"there is no file or folder {text}")
    return text


def parse_named_path(text: str) -> str:
    """Return `PATH` or `NAME=PATH`, checked in the same way. The path may be a URL."""
    any_path(text)
    any_path(text.partition("=")[2])
    return text


def separator(text: str) -> str:
    """Return the value of `--sep`. A shell passes `'\t'` as two characters that mean a tab."""
    return "\t" if text == r"\t" else text


def read_percentage(text: str, option: str) -> float:
    """Return the share that an option gives: `5%` and `5` are 0.05.

    Raises:
        UsageError: the text is not a percentage.
    """
    try:
        value = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise UsageError(f"{option} {text}: give a percentage between 0 and 100, such as 5%")
    return value


def add_csv(parser: argparse.ArgumentParser, sep: str | None, shown: str = "{}") -> None:
    """Add `--sep` and `--encoding`. `shown` is how the help shows a default, or says what happens without one."""
    parser.add_argument(
        "--sep",
        type=separator,
        default=sep,
        help=f"the character between the fields of a CSV file ({shown.format('a comma')})",
    )
    parser.add_argument(
        "--encoding", default="utf8", help=f"the encoding of CSV and text files ({shown.format('utf8')})"
    )


def add_json(
    parser: argparse.ArgumentParser, text: str = "print JSON instead", *, inherits: bool = False
) -> None:
    """Add `--json`. With `inherits`, an action keeps the flag that was given before it."""
    default = argparse.SUPPRESS if inherits else False
    parser.add_argument("--json", action="store_true", default=default, help=text)


def read_price(text: str) -> Price:
    """Return what one worker costs."""
    from stoker.goodput.ledger import Price

    return Price.parse(text)


def add_price(parser: argparse.ArgumentParser, text: str) -> None:
    """Add `--price`."""
    parser.add_argument("--price", metavar="PRICE", type=read_price, help=text)


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add `--store`, which `read_store_option` and `read_store` read."""
    # A default of the action must not replace the value given before the action.
    parser.add_argument(
        "--store",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="the store (STOKER_STORE, [tool.stoker], .stoker/stoker.db)",
    )


def read_store_option(args: argparse.Namespace) -> str | None:
    """Return the value of `--store`, if it was given."""
    return getattr(args, "store", None)


def read_store(args: argparse.Namespace) -> Address:
    """Return the store to read: the one named by `--store`, which must exist, or the default, which may be empty.

    Raises:
        UsageError: the store is switched off, invalid or missing.
    """
    from stoker.tracking.store import address

    given = read_store_option(args)
    found = address.require(given)
    if given and found.path is not None and not found.path.exists():
        raise UsageError(f"--store {given}: there is no file {found.path}")
    return found


def add_experiments(parser: argparse.ArgumentParser, text: str) -> None:
    """Add `--experiments`. Its value is in seconds: 0 for `off`, None if it was not given."""
    parser.add_argument("--experiments", type=_experiment_seconds, metavar="TIME", help=text)


def _experiment_seconds(text: str) -> float | None:
    from stoker.doctor.measure.experiment_options import experiment_seconds

    try:
        return experiment_seconds(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the program and its arguments, which `read_program` reads."""
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="program args...")


def read_program(args: argparse.Namespace, example: str) -> tuple[str, list[str], bool]:
    """Return the name of the program, its arguments, and whether it is a module, as `Target` takes them.

    Raises:
        UsageError: no program was given; the message shows the example.
    """
    words = args.program if args.module is None else args.module
    if not words:
        raise UsageError(f"no program given: {example}")
    return words[0], words[1:], args.module is not None
