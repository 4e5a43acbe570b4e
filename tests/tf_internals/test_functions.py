"""`tf.function`, its traces, and AutoGraph."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

from stoker.tf_internals import functions
from tests.tf_internals.calls import recorded


def test_function_call_is_passed_with_the_function() -> None:
    double = tf.function(lambda x: 2 * x)
    with recorded(functions.function_call()) as calls:
        double(3)
    assert calls == [(double, 3)]


def test_concrete_function_creation_is_told_what_is_traced() -> None:
    def plain(x: Any) -> Any:
        return 2 * x

    double = tf.function(plain)
    with recorded(functions.concrete_function_creation()) as calls:
        double(tf.constant(1.0))
        double(tf.constant(2.0))
    ((function_type, _, _, options),) = calls
    assert "float32" in str(function_type.parameters["x"].type_constraint)
    assert options.python_function.__name__ == "plain"
    assert [one.function_type for one in options.function_cache.values()] == [function_type]


def test_traces_are_concrete_functions() -> None:
    double = tf.function(lambda x: 2 * x)
    assert functions.traces(double) == []
    double(tf.constant(1.0))
    double(tf.constant(1))
    assert [len(one.graph.inputs) for one in functions.traces(double)] == [1, 1]


def test_is_compiled_by_xla() -> None:
    assert functions.is_compiled_by_xla(tf.function(lambda: 1, jit_compile=True))
    assert not functions.is_compiled_by_xla(tf.function(lambda: 1))


@pytest.mark.parametrize("silent", [False, True])
def test_silence_retracing_warning(silent: bool, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    caplog.set_level(logging.WARNING, "tensorflow")
    double = tf.function(lambda x: 2 * x)
    if silent:
        functions.silence_retracing_warning(double)
    try:
        for number in range(12):
            double(number)
    finally:
        logger.removeHandler(caplog.handler)
    assert ("retracing" in caplog.text) is not silent


def test_convert_has_if_on_tensors() -> None:
    def absolute(x: Any) -> Any:
        if x < 0:
            x = -x
        return x

    converted = functions.convert(absolute)
    traced = tf.function(lambda x: converted(x), autograph=False)
    assert [int(traced(tf.constant(x))) for x in (-2, 3)] == [2, 3]


@pytest.mark.parametrize(
    ("library", "module"),
    [
        ("tensorflow", "tensorflow.python.util.traceback_utils"),
        ("keras", "keras.src.utils.traceback_utils"),
    ],
)
def test_hide_frames(library: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keras.__name__ == "keras"
    filters: Any = importlib.import_module(module)
    monkeypatch.setattr(filters, "_EXCLUDED_PATHS", filters._EXCLUDED_PATHS)
    inside = str(tmp_path / "module.py")
    assert filters.include_frame(inside)
    functions.hide_frames(library, str(tmp_path))
    assert not filters.include_frame(inside)
    assert filters.include_frame(str(tmp_path.parent / "module.py"))
