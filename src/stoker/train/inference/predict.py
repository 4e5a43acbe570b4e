"""`stoker.predict`: what `model.predict` returns, with many batches in one compiled call.

The batches are those of Keras, of `batch_size` rows in order, so a model that mixes rows gives the same results; only
the calls are fewer. A single batch, or a single row in a loop, is one call of a kept function.
"""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import TensorFlowTrainer
from stoker.tf_internals.types import Array, Callbacks, Data, Nest, Tensor, Verbose
from stoker.train.execution.batch_function import BatchFunction, BatchStep
from stoker.train.execution.epoch_steps import steps_per_execution
from stoker.train.execution.feeding.streamed import is_distributed
from stoker.train.execution.kept import traces_of
from stoker.train.execution.model_kinds import must_keras_run
from stoker.train.execution.own_methods import calls_own
from stoker.train.inference.batch_runs import BatchSource, PredictHooks, RowSource, StreamSource, run_all
from stoker.train.inference.inputs import PredictRows, Stream, is_arrays, make_rows, make_stream
from stoker.train.inference.tracked import track_run


@calls_own
def predict(
    model: keras.Model,
    x: Data,
    batch_size: int | None = None,
    verbose: Verbose = "auto",
    steps: int | None = None,
    callbacks: Callbacks = None,
    *,
    track: bool = False,
) -> Nest:
    """`model.predict(...)`: same arguments, same arrays. With `verbose="auto"` a single batch shows no bar.

    Args:
        model: a Keras model. The other positional arguments are those of `model.predict`.
        track: keep the prediction in the store, as a run that is linked to its data.
    """
    if not track:
        return _predict(model, x, batch_size, verbose, steps, callbacks)
    with track_run("predict", model, (x,), batch_size=batch_size):
        return _predict(model, x, batch_size, verbose, steps, callbacks)


def _predict(
    model: keras.Model,
    x: Data,
    batch_size: int | None,
    verbose: Verbose,
    steps: int | None,
    callbacks: Callbacks,
) -> Nest:
    def predict_with_keras(x: Data, batch_size: int | None = None) -> Nest:
        return TensorFlowTrainer.predict(model, x, batch_size, verbose, steps, callbacks)

    if must_keras_run(model, "predict") or is_distributed(x):
        return predict_with_keras(x, batch_size)
    per_execution = steps_per_execution(model)
    rows = make_rows(x, batch_size, steps, per_execution) if is_arrays(x) else None
    if rows is not None:
        if rows.count == 1 and not callbacks and verbose in (0, "auto"):
            return tf.nest.map_structure(_read, _function(model, rows, 1).call(*rows.tensors(0, 1)))
        function = _function(model, rows)
        if rows.batches <= 1 and not callbacks and verbose in (0, "auto"):
            return tf.nest.map_structure(_read, function.call(*rows.tensors(0, rows.count)))
        if function.joinable():
            source: BatchSource = RowSource(rows, function)
            return _collect(source, _hooks(model, callbacks, verbose, rows.batches))
        return predict_with_keras(x, batch_size)
    stream = make_stream(x, batch_size, steps, per_execution)
    if stream.loopable:
        function = _function(model, stream)
        if function.joinable():
            source = StreamSource(stream, steps, function)
            return _collect(source, _hooks(model, callbacks, verbose, stream.batches))
    return predict_with_keras(stream.adapter)


def _step(model: keras.Model) -> BatchStep:
    step: BatchStep = model.predict_step
    return step


def _function(model: keras.Model, data: PredictRows | Stream, rows: int | None = None) -> BatchFunction:
    return traces_of(model).batch_function("predict", _step, data.skeleton, data.leaves, rows)


def _hooks(
    model: keras.Model, callbacks: Callbacks, verbose: Verbose, batches: int | None
) -> PredictHooks | None:
    if not callbacks and verbose == 0:
        return None
    return PredictHooks(model, callbacks, verbose, batches)


def _collect(source: BatchSource, hooks: PredictHooks | None) -> Nest:
    """Return the outputs of all calls, joined once at the end."""
    parts: list[Tensor] = []

    def take(outputs: Nest) -> dict[str, Nest]:
        parts.append(tf.nest.map_structure(_read, outputs))
        return {"outputs": outputs}

    if hooks is not None:
        hooks.begin()
    if run_all(source, hooks, take) == 0:
        raise ArgumentError("there is nothing to predict: the data had no batch")
    if hooks is not None:
        hooks.end()
    return parts[0] if len(parts) == 1 else tf.nest.map_structure(_join, *parts)


def _read(output: Tensor) -> Nest:
    return output.numpy() if isinstance(output, tf.Tensor) else output


def _join(*parts: Array) -> Array:
    whole: Array = np.concatenate([np.atleast_1d(part) for part in parts])
    return whole
