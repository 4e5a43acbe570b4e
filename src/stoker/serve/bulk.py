"""Answer whole files: each chunk of rows goes through the predictor, and its answers to a writer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from stoker.errors import ArgumentError
from stoker.serve.answer_files import Columns, Writer
from stoker.serve.predictor import Outputs, Predictor
from stoker.serve.row_files import RowChunk
from stoker.serve.rows import RowError
from stoker.serve.table_cells import is_table

PREDICTION, SCORE, SCORES = "prediction", "score", "scores"
# With more classes than this, only the best score is written.
_MOST_SCORES = 20


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
