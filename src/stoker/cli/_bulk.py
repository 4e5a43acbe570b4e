"""The options that `stoker predict` and `stoker evaluate` share: a bundle, the rows to answer, and how to read them."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import storage
from stoker.chatter import quiet_tensorflow
from stoker.cli._options import any_path, data_path, separator
from stoker.cli._trust import add_trust, trust_of
from stoker.errors import UsageError
from stoker.printing import print_note
from stoker.serve.bundle import DESCRIPTION, enter_run

if TYPE_CHECKING:
    from stoker.serve.predictor import Predictor
    from stoker.serve.row_files import RowChunk, RowFileOptions
    from stoker.serve.signature import Field


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Add the bundle and the rows, and how to read them."""
    parser.add_argument(
        "bundle", type=any_path, metavar="BUNDLE", help="the bundle's directory or URL, or a run's"
    )
    parser.add_argument(
        "rows", type=data_path, metavar="ROWS", help="a file, a glob or a folder; a path or a URL"
    )
    parser.add_argument(
        "--sep", type=separator, help="the character between the fields of a CSV file (detected)"
    )
    parser.add_argument("--encoding", help="the encoding of CSV and text files (detected)")
    parser.add_argument("--column", metavar="COLUMN", help="the column of a table that holds the texts")
    add_trust(parser)


def open_predictor(args: argparse.Namespace) -> Predictor:
    """Open the bundle, or the bundle in a run's directory."""
    place = Path(storage.local_path(args.bundle) if storage.is_url(args.bundle) else args.bundle)
    place = enter_run(place)
    trust = trust_of(args)
    if not (place / DESCRIPTION).exists():
        raise UsageError(f"{args.bundle} is not a bundle: it has no {DESCRIPTION}")
    with quiet_tensorflow():
        from stoker.serve.predictor import Predictor

        return Predictor(place, allow_ops=trust.allow_ops, require_signature=trust.public_key or None)


def read_rows(args: argparse.Namespace, predictor: Predictor) -> tuple[Iterator[RowChunk], RowFileOptions]:
    """Return the rows, a chunk at a time, and how they are read. Errors in the first rows are reported at once.

    Raises:
        UsageError: there are no rows.
    """
    from stoker.serve.row_files import RowFileOptions, read_chunks

    bundle = predictor.bundle
    column = args.column or bundle.description.get("lineage", {}).get("column")
    options = RowFileOptions(args.sep, args.encoding, column)
    chunks = _report_absent(bundle.signature.inputs, read_chunks(args.rows, bundle.signature.inputs, options))
    first = next(chunks, None)
    if first is None:
        raise UsageError(f"{args.rows} has no rows")
    return itertools.chain([first], chunks), options


def _report_absent(fields: Sequence[Field], chunks: Iterator[RowChunk]) -> Iterator[RowChunk]:
    """Yield the chunks, and report once which inputs a table lacks.

    Raises:
        RowError: the table has none of them.
    """
    from stoker.serve.table_cells import describe_absent, is_table

    said: set[str] = set()
    source = ""
    for chunk in chunks:
        if is_table(fields) and chunk.source != source:
            source = chunk.source
            absent = describe_absent(fields, chunk.columns, source)
            if absent is not None and absent.removeprefix(source) not in said:
                said.add(absent.removeprefix(source))
                print_note(absent)
        yield chunk


def report_repairs(options: RowFileOptions) -> None:
    """Say what was done to the rows of CSV files."""
    several = len(options.repairs) > 1
    for file, repairs in options.repairs.items():
        for line in repairs.lines("not answered"):
            print_note(f"{file}: {line}" if several else line)
