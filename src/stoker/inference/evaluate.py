"""`stoker.evaluate`: what `model.evaluate` returns, with many batches in one compiled call and one read at the end.

Losses and metrics stay in their variables on the device; the host sees them when the data has ended. A `TestRun`
is the same for callers that evaluate again and again on the same data, such as validation after every epoch.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src.utils.python_utils import pythonify_logs

from stoker.errors import ArgumentError
from stoker.execution.traced import BatchFunction, Step, compiled
from stoker.inference.arrays import Rows, as_rows, is_arrays
from stoker.inference.batch_loops import LastLogs, MetricResults, Outcome, no_leaves_are_open
from stoker.inference.batch_runs import RowSource, StreamSource, run_all
from stoker.inference.callbacks import InferenceHooks, Verbose
from stoker.inference.eligibility import keras_must
from stoker.inference.streams import Stream, as_stream


def evaluate(
    model: keras.Model,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    verbose: Verbose = "auto",
    sample_weight: Any = None,
    steps: int | None = None,
    callbacks: Any = None,
    return_dict: bool = False,
) -> Any:
    """`model.evaluate(...)`: same arguments, same numbers."""
    run = None if keras_must(model, "evaluate") else TestRun(model, x, y, sample_weight, batch_size, steps)
    if run is None or not run.loopable:
        return model.evaluate(
            x if run is None else run.for_keras,
            y if run is None or run.for_keras is x else None,
            batch_size=batch_size,
            verbose=verbose,
            sample_weight=sample_weight if run is None or run.for_keras is x else None,
            steps=steps,
            callbacks=callbacks,
            return_dict=return_dict,
        )
    hooks = None
    if callbacks or verbose != 0:
        hooks = InferenceHooks("test", model, callbacks, verbose, run.batches)
    logs = run.logs(hooks)
    return logs if return_dict else model._flatten_metrics_in_order(logs)


class TestRun:
    """A model and the data to test it on. `logs()` may be called as often as the data can be read."""

    __test__ = False  # for pytest: this is not a test case

    def __init__(
        self,
        model: keras.Model,
        x: Any,
        y: Any,
        sample_weight: Any,
        batch_size: int | None,
        steps: int | None,
    ) -> None:
        model._assert_compile_called("evaluate")
        self._model, self._steps = model, steps
        rows = as_rows(x, y, sample_weight, batch_size, steps) if is_arrays(x, y, sample_weight) else None
        if rows is not None and rows.count == 0:
            raise ArgumentError("there is nothing to evaluate: x has no rows")
        self._data: Rows | Stream = rows or as_stream(x, y, sample_weight, batch_size, steps)
        self.for_keras = self._data.adapter if isinstance(self._data, Stream) else x
        self.loopable = isinstance(self._data, Rows) or self._data.loopable
        if self.loopable:
            self.loopable = self._logs_have_a_shape()

    @property
    def batches(self) -> int | None:
        return self._data.batches

    def logs(self, hooks: InferenceHooks | None = None) -> dict[str, Any]:
        """Resets the metrics, runs the data, reads the results."""
        function = self._function()
        outcome: Outcome = (
            LastLogs(function) if _returns_its_own_logs(self._model) else MetricResults(self._model)
        )
        if isinstance(self._data, Rows):
            source: Any = RowSource(self._data, function, outcome)
        else:
            source = StreamSource(self._data, self._steps, function, outcome)
        latest: Any = {}

        def take(logs: Any) -> Any:
            nonlocal latest
            latest = logs
            return logs

        if hooks is not None:
            hooks.begin()
        self._model.reset_metrics()
        if run_all(source, hooks, take) == 0:
            raise ArgumentError("there is nothing to evaluate: the data had no batch")
        if _returns_its_own_logs(self._model):
            latest = self._model._get_metrics_result_or_logs(latest)
        logs: dict[str, Any] = pythonify_logs(latest)
        if hooks is not None:
            hooks.end(logs)
        return logs

    def _function(self) -> BatchFunction:
        return compiled(self._model).batch_function("test", _step, self._data.skeleton, self._data.leaves)

    def _logs_have_a_shape(self) -> bool:
        outputs = self._function().outputs
        return isinstance(outputs, dict) and no_leaves_are_open(tf.nest.flatten(outputs))


def _step(model: keras.Model) -> Step:
    step: Step = model.test_step
    return step


def _returns_its_own_logs(model: keras.Model) -> bool:
    """Is what the step returns something else than the model's metrics?"""
    own = type(model)
    return (
        own.test_step is not keras.Model.test_step
        or own.compute_metrics is not keras.Model.compute_metrics
        or "test_step" in model.__dict__
        or "compute_metrics" in model.__dict__
    )
