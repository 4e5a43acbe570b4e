"""Score a bundle on labelled rows, with the scores of the recipe's report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from stoker.data.array_types import Array
from stoker.data.cells import BadCellError, CellReading
from stoker.errors import ArgumentError
from stoker.recipes.scores import Score, contest
from stoker.serve.bulk import answer_chunk
from stoker.serve.predictor import Predictor
from stoker.serve.row_files import FILE, RowChunk

# Returns the index of a class, or a number; the text of a class that the model does not know; None without a label.
LabelReader: TypeAlias = Callable[[object], float | str | None]


@dataclass(frozen=True)
class FileEvaluation:
    """The scores of a bundle.

    Attributes:
        rows: how many rows were scored.
        unlabelled: the number of rows without a label, or with one that cannot be read.
        unknown: labels that are not classes of the model, with the number of rows.
        left_out: why rows of CSV files were left out, as in training, with their number.
        scores: the scores by metric.
    """

    rows: int
    unlabelled: int
    unknown: dict[str, int]
    left_out: dict[str, int]
    scores: dict[str, Score]


def evaluate_rows(
    predictor: Predictor, chunks: Iterable[RowChunk], target: str | None, *, balanced: bool
) -> FileEvaluation:
    """Answer all rows and compare the answers with the labels.

    Args:
        predictor: the predictor of the bundle.
        chunks: the rows.
        target: the column of the labels; None if the folder of each file is its class.
        balanced: whether the first score is the mean of the classes' recalls.

    Raises:
        ArgumentError: there is no such column, no labelled row, or the bundle gives neither classes nor numbers.
    """
    labels = predictor.bundle.labels
    reading = _target_reading(predictor)
    read = _class_reader(labels, reading) if labels is not None else _number_reader(reading)
    truths: list[float] = []
    answers: list[Array] = []
    unknown: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    unlabelled = 0
    for chunk in chunks:
        left_out.update(chunk.left_out.values())
        cells = _labels_of(chunk, target)
        found = [read(cells[place]) for place in chunk.places]
        if not found:
            continue
        outputs = answer_chunk(predictor, chunk)
        given = np.asarray(outputs["scores"] if labels is not None else _take_only_output(outputs))
        known = {number: one for number, one in enumerate(found) if isinstance(one, int | float)}
        unlabelled += sum(one is None for one in found)
        unknown.update(one for one in found if isinstance(one, str))
        truths += known.values()
        answers.append(given[list(known)])
    if not truths:
        raise ArgumentError(_explain_nothing(target, unknown))
    whole = np.concatenate(answers)
    (own,) = contest(
        np.array(truths, np.int64 if labels is not None else np.float64),
        {"model": whole if labels is not None else whole.reshape(-1)},
        classes=len(labels or ()),
        balanced=balanced,
    )
    return FileEvaluation(len(truths), unlabelled, dict(unknown.most_common()), dict(left_out), own.scores)


def _explain_nothing(target: str | None, unknown: Mapping[str, int]) -> str:
    where = "the folders" if target is None else f"column {target!r}"
    odd = f": {next(iter(unknown))!r} is not a class of the model" if unknown else " are all empty"
    return f"no row can be scored: the labels in {where}{odd}"


def _labels_of(chunk: RowChunk, target: str | None) -> list[object]:
    if target is None:
        return [Path(str(one)).parent.name for one in chunk.columns[FILE]]
    named = {name.strip("\ufeff \t"): name for name in chunk.columns}
    if target.strip() not in named:
        raise ArgumentError(f"{chunk.source} has no column {target!r}: name the labels with --target")
    return chunk.columns[named[target.strip()]]


def _target_reading(predictor: Predictor) -> CellReading:
    """Return how the target's cells were read for training."""
    stored = predictor.bundle.description.get("lineage", {}).get("target_reading")
    return CellReading.from_json(stored) if isinstance(stored, dict) else CellReading("number")


def _class_reader(labels: tuple[str, ...], reading: CellReading) -> LabelReader:
    """Return a function that gives the index of a class, the text of an unknown one, or None without a label."""
    known: dict[str, int] = {label: number for number, label in enumerate(labels)}
    numbers = {
        _parse_number(label): number for label, number in known.items() if _parse_number(label) is not None
    }
    truths = {"true": "True", "false": "False"}

    def read(cell: object) -> int | str | None:
        text = "" if cell is None or cell != cell else str(cell)
        text = text if text in known else reading.read_word(text)
        if text in known:
            return known[text]
        if not text.strip():
            return None
        plain = truths.get(text.strip().lower(), text.strip())
        if plain in known:
            return known[plain]
        return numbers.get(_parse_number(plain, reading), text)

    return read


def _parse_number(text: str, reading: CellReading | None = None) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None if reading is None or reading.kind == "category" else _read_number(text, reading)


def _read_number(text: str, reading: CellReading) -> float | None:
    """Return a number as the target's cells were read for training; None if it cannot be read."""
    try:
        value = reading.read(text)
    except BadCellError:
        return None
    return None if value is None else float(value)


def _number_reader(reading: CellReading) -> LabelReader:
    """Return a function that reads a number as the target's cells were read for training; None for a missing one."""

    def read(cell: object) -> float | None:
        if isinstance(cell, int | float):
            return float(cell) if cell == cell else None
        return _read_number("" if cell is None else str(cell), reading)

    return read


def _take_only_output(outputs: Mapping[str, Array]) -> Array:
    if len(outputs) != 1:
        raise ArgumentError(
            f"the bundle gives {', '.join(outputs)}: only classes or one number can be scored"
        )
    return next(iter(outputs.values()))
