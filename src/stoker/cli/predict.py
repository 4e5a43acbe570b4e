"""Answer the rows of a file with a bundle: a table, or a folder of texts or images.

    stoker predict runs/latest/bundle rows.csv -o answers.csv
    stoker predict bundle/ photos/ -o answers.jsonl
    stoker predict bundle/ 'new/*.parquet' > answers.csv

Rows are read as the training file was: titles above the header, missing cells and extra columns are fine. A line says
which input columns are missing, and what the model uses instead. Each row is written with its prediction and, for
classes, the scores. A row that training leaves out, such as a total at the end, keeps its place without a prediction.
Files of any size are streamed. Exit code: 0; 2 if there is no bundle, no input column, or a row cannot be answered, in
which case nothing is written to -o.
"""

from __future__ import annotations

import argparse
import sys

from stoker import clock
from stoker.cli._bulk import add_rows, open_predictor, read_rows, report_repairs
from stoker.cli._options import output_path
from stoker.cli._spelling import respell_errors
from stoker.printing import print_note
from stoker.serve.answer_files import check_format, open_writer, text_writer
from stoker.units import quantity


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker predict`."""
    add_rows(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=output_path,
        metavar="FILE",
        help="where to write: .csv, .tsv, .jsonl or .parquet (CSV on stdout)",
    )


def run(args: argparse.Namespace) -> int:
    """Answer all rows."""
    if args.output is not None:
        # Before TensorFlow is loaded, which takes seconds.
        check_format(args.output)
    predictor = open_predictor(args)
    from stoker.serve.bulk import write_answers

    started = clock.real_ns()
    with respell_errors(args):
        chunks, options = read_rows(args, predictor)
        if args.output is None:
            write_answers(predictor, chunks, text_writer(sys.stdout))
            report_repairs(options)
            return 0
        with open_writer(args.output) as write:
            count = write_answers(predictor, chunks, write)
    report_repairs(options)
    seconds = max(1e-9, (clock.real_ns() - started) / 1e9)
    print_note(f"{quantity(count, 'row')} answered in {args.output} ({count / seconds:,.0f} rows/s)")
    return 0
