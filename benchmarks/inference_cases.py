"""What `benchmarks/fit.py` predicts and evaluates: single rows in a loop, whole arrays, a stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
from fit_cases import CASES as TRAINED
from fit_cases import mlp, rows, sentences, text

import stoker

Way = Callable[[], float]
Ways = dict[str, Way]
ROWS_IN_A_LOOP = 20


def timed(call: Callable[[], Any], times: int = 1) -> Way:
    """Seconds a call, warmed up."""
    for _ in range(3):
        call()

    def way() -> float:
        started = time.perf_counter()
        for _ in range(times):
            call()
        return (time.perf_counter() - started) / times

    return way


def single_rows(directory: Path) -> list[tuple[str, Ways]]:
    """The same row again and again, as a server or a simulation asks for it; all give an array on the host."""

    def ways(model: keras.Model, row: Any) -> Ways:
        return {
            "Keras predict": timed(lambda: model.predict(row, verbose=0), ROWS_IN_A_LOOP),
            "Keras predict_on_batch": timed(lambda: model.predict_on_batch(row), ROWS_IN_A_LOOP),
            "model(x)": timed(lambda: keras.ops.convert_to_numpy(model(row, training=False)), ROWS_IN_A_LOOP),
            "stoker.predict": timed(lambda: stoker.predict(model, row), ROWS_IN_A_LOOP),
        }

    return [
        ("one row in a loop, MLP", ways(mlp(), rows(1, 100)[0])),
        ("one row in a loop, text", ways(text(), sentences(1))),
    ]


def subjects(directory: Path) -> list[tuple[str, keras.Model, tuple[Any, ...]]]:
    """Title, model, and what predict and evaluate are given."""
    given = []
    for name, count in (
        ("mlp", "10,000 rows"),
        ("wide", "2,048 rows"),
        ("cnn", "1,024 images"),
        ("text", "512 texts"),
    ):
        case = TRAINED[name]
        given.append((f"{name}, {count}", case.model(), tuple(case.data(directory))))
    stream = TRAINED["stream"]
    given.append(("TFRecords, 32,768 rows", stream.model(), (stream.data(directory),)))
    return given


def predict(directory: Path) -> list[tuple[str, Ways]]:
    def ways(model: keras.Model, x: Any) -> Ways:
        return {
            "Keras predict": timed(lambda: model.predict(x, verbose=0)),
            "stoker.predict": timed(lambda: stoker.predict(model, x, verbose=0)),
        }

    return [(f"predict, {title}", ways(model, data[0])) for title, model, data in subjects(directory)]


def evaluate(directory: Path) -> list[tuple[str, Ways]]:
    def ways(model: keras.Model, data: tuple[Any, ...]) -> Ways:
        return {
            "Keras evaluate": timed(lambda: model.evaluate(*data, verbose=0)),
            "stoker.evaluate": timed(lambda: stoker.evaluate(model, *data, verbose=0)),
        }

    return [(f"evaluate, {title}", ways(model, data)) for title, model, data in subjects(directory)]


CASES: dict[str, Callable[[Path], list[tuple[str, Ways]]]] = {
    "rows": single_rows,
    "predict": predict,
    "evaluate": evaluate,
}
