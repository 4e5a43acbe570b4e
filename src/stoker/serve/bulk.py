"""Answer whole files: each chunk of rows goes through the predictor, and its answers to a file of any format."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np

from stoker.errors import ArgumentError
from stoker.serve.predictor import Outputs, Predictor
from stoker.serve.row_files import RowChunk
from stoker.serve.rows import RowError
from stoker.serve.table_cells import is_table

PREDICTION, SCORE, SCORES = "prediction", "score", "scores"
# With more classes than this, only the best score is written.
_MOST_SCORES = 20
Columns: TypeAlias = dict[str, list[Any]]
Writer: TypeAlias = Callable[[Columns], None]
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")


def answer_chunk(predictor: Predictor, chunk: RowChunk) -> Outputs:
    """Return the outputs for those rows of a chunk that can be answered.

    Raises:
        ArgumentError: a row does not fit; the line names it.
    """
    try:
        return predictor.predict(_inputs(predictor, chunk))
    except RowError as error:
        for place in chunk.places:
            try:
                predictor.predict(_inputs(predictor, chunk.row(place)))
            except RowError as first:
                raise ArgumentError(f"{chunk.source}, row {chunk.first + place:,}: {first}") from None
        raise ArgumentError(f"{chunk.source}: {error}") from None


def _inputs(predictor: Predictor, chunk: RowChunk) -> dict[str, list[object]]:
    fields = predictor.bundle.signature.inputs
    names = {field.name for field in fields}
    return {name: chunk.cells(name) for name in chunk.columns if is_table(fields) or name in names}


def answer_columns(predictor: Predictor, outputs: Outputs) -> Columns:
    """Return columns for the answers: the prediction, and the scores of the classes."""
    labels = predictor.bundle.labels
    if labels is not None and "label" in outputs and SCORES in outputs:
        scores = np.asarray(outputs[SCORES])
        columns: Columns = {PREDICTION: list(outputs["label"]), SCORE: _round(scores.max(1))}
        if len(labels) <= _MOST_SCORES:
            columns |= {f"{SCORES}.{label}": _round(scores[:, n]) for n, label in enumerate(labels)}
        return columns
    if len(outputs) == 1:
        return {PREDICTION: _cells(next(iter(outputs.values())))}
    return {name: _cells(values) for name, values in outputs.items()}


def _round(scores: Any) -> list[float]:
    """Round scores to seven digits; a float32 has no more."""
    return [float(f"{one:.7g}") for one in scores]


def _cells(values: Any) -> list[Any]:
    array = np.asarray(values)
    if array.ndim > 1 and array.shape[1:] == (1,):
        array = array[:, 0]
    if array.dtype.kind == "f" and array.ndim == 1:
        return _round(array)
    plain = array.tolist()
    return [_text(one) if array.ndim == 1 else json.dumps(one) for one in plain]


def _text(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def write_answers(predictor: Predictor, chunks: Iterable[RowChunk], write: Writer) -> int:
    """Answer all rows, and write each row's own columns with its answer. Return the number of answered rows.

    Rows that training would leave out keep their place but get no answer, so row 7 of the answers is row 7 of the file.

    Raises:
        ArgumentError: a row does not fit, or none has an answer.
    """
    count = 0
    names: list[str] = []
    for chunk in chunks:
        places = chunk.places
        if not places and not names:
            raise ArgumentError(f"{chunk.source} has no row to answer: {next(iter(chunk.left_out.values()))}")
        answers = answer_columns(predictor, answer_chunk(predictor, chunk)) if places else {}
        names = names or list(answers)
        own = {name: chunk.columns[name] for name in chunk.shown}
        for name in names:
            own[_free_name(name, own)] = _spread(answers.get(name, []), places, len(chunk))
        write(own)
        count += len(places)
    return count


def _spread(values: list[Any], places: list[int], count: int) -> list[Any]:
    """Put the values at their places in a list of `count`; all other places hold None."""
    found = [None] * count
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found


def _free_name(name: str, taken: Columns) -> str:
    while name in taken:
        name += "_"
    return name


@contextmanager
def open_writer(path: str) -> Iterator[Writer]:
    """Yield a function that appends columns to a file. The file appears only once everything is written.

    Raises:
        ArgumentError: the ending of its name is not a known format, or the file cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise ArgumentError(f"{path}: use a name that ends in {', '.join(FORMATS)}")
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if suffix == ".parquet":
            with _parquet_writer(beside) as write:
                yield write
        else:
            with beside.open("w", encoding="utf-8", newline="") as stream:
                yield text_writer(stream, suffix)
        os.replace(beside, target)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


def text_writer(stream: TextIO, suffix: str = ".csv") -> Writer:
    """Return a function that writes columns to a stream as CSV, TSV or JSON lines."""
    if suffix == ".jsonl":

        def write_lines(columns: Columns) -> None:
            for cells in zip(*columns.values(), strict=True):
                row = dict(zip(columns, cells, strict=True))
                stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

        return write_lines
    rows = csv.writer(stream, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    header: list[str] = []

    def write(columns: Columns) -> None:
        if not header:
            header.extend(columns)
            rows.writerow(header)
        rows.writerows(zip(*(columns.get(name, [None] * _length(columns)) for name in header), strict=True))

    return write


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


@contextmanager
def _parquet_writer(path: Path) -> Iterator[Writer]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    made: list[pq.ParquetWriter] = []

    def write(columns: Columns) -> None:
        try:
            if not made:
                table = pa.table({name: _array(pa, values) for name, values in columns.items()})
                made.append(pq.ParquetWriter(path, table.schema))
            else:
                arrays = {f.name: pa.array(columns[f.name], f.type) for f in made[0].schema}
                table = pa.table(arrays)
            made[0].write_table(table)
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise ArgumentError(
                f"the types of the columns differ between rows ({error}): write a .csv or .jsonl file instead"
            ) from None

    try:
        yield write
    finally:
        for one in made:
            one.close()


def _array(pa: Any, values: list[Any]) -> Any:
    """Return the values as an array; if all are missing, as an array of text."""
    found = pa.array(values)
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found
