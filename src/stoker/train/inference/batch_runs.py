"""One pass of predict over rows or a stream: calls, callbacks, the end of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import tensorflow as tf

from stoker import clock
from stoker.doctor.attach import announced
from stoker.tf_internals.types import (
    Callbacks,
    DatasetIterator,
    LogValue,
    Model,
    Nest,
    Optional,
    Tensor,
    Verbose,
)
from stoker.train.execution.batch_function import BatchFunction
from stoker.train.execution.epoch_steps import steps_per_execution
from stoker.train.execution.hooks import PREDICT, list_batch_callbacks, list_callbacks
from stoker.train.execution.stretch import CallLength
from stoker.train.inference.inputs import PredictRows, Stream, element_leaves, warn_ran_out

Arrays = list[Tensor]  # TensorArrays, one for each output
LogsOf = Callable[[Nest], dict[str, Nest]]

_CHUNK_BYTES = 64 << 20
# For datasets of up to this many batches, tracing a loop takes longer than calling the function of one batch.
_WORTH_A_LOOP = 32


class PredictHooks:
    """The callbacks of one prediction, called between compiled calls.

    A callback with hooks on batches gets every batch (every execution, if the model was compiled with
    `steps_per_execution`), at the cost of one call for each. Otherwise the bar is called once per compiled call.
    """

    def __init__(self, model: Model, callbacks: Callbacks, verbose: Verbose, batches: int | None) -> None:
        self._list = list_callbacks(model, callbacks, verbose, batches)
        self._model = model
        self.each_batch = bool(list_batch_callbacks(self._list.callbacks, PREDICT))
        self.per_execution = steps_per_execution(model)

    def begin(self) -> None:
        self._model.stop_predicting = False
        self._list.on_predict_begin()

    def before_batch(self, batch: int) -> None:
        self._list.on_predict_batch_begin(batch)

    def after_batch(self, batch: int, logs: LogValue) -> bool:
        """Call the hooks; return False if a callback asks to stop."""
        self._list.on_predict_batch_end(batch, logs)
        return not self._model.stop_predicting

    def end(self) -> None:
        self._list.on_predict_end()


class Outputs:
    """The outputs of successive batches, in the graph, joined by rows; outputs without rows are stacked."""

    def __init__(self, function: BatchFunction, count: Tensor | None) -> None:
        """`count`: how many batches there will be; None if the data may end sooner."""
        self._structure = function.outputs
        self._specs = tf.nest.flatten(function.outputs)
        self.empty = [
            tf.TensorArray(
                spec.dtype,
                size=0 if count is None else count,
                dynamic_size=count is None,
                element_shape=spec.shape,
                infer_shape=False,
            )
            for spec in self._specs
        ]

    def add(self, index: Tensor, outputs: Nest, state: Arrays) -> Arrays:
        """Add the outputs of batch number `index`."""
        flat = tf.nest.flatten(outputs)
        return [array.write(index, value) for array, value in zip(state, flat, strict=True)]

    def join(self, state: Arrays) -> Nest:
        """Join the outputs, after the last batch."""
        flat = [
            array.concat() if spec.shape.rank else array.stack()
            for array, spec in zip(state, self._specs, strict=True)
        ]
        return tf.nest.pack_sequence_as(self._structure, flat)


def loop_over_rows(function: BatchFunction) -> Callable[..., Nest]:
    """Return `loop(batch, count, *leaves)`, which runs `count` full batches of `batch` rows."""
    size = tf.TensorSpec([], tf.int32)

    def loop(batch: Tensor, count: Tensor, *leaves: Tensor) -> Nest:
        whole = Outputs(function, count)

        def body(index: Tensor, state: Arrays) -> tuple[Tensor, Arrays]:
            first = index * batch
            outputs = function.call(*[leaf[first : first + batch] for leaf in leaves])
            return index + 1, whole.add(index, outputs, state)

        _, state = tf.while_loop(lambda index, _: index < count, body, (0, whole.empty))
        return whole.join(state)

    compiled = tf.function(loop, input_signature=[size, size, *function.specs], autograph=False)
    concrete: Callable[..., Nest] = compiled.get_concrete_function()
    return concrete


def loop_over_stream(function: BatchFunction) -> Callable[..., Nest]:
    """Return `loop(iterator, count)`, which runs up to `count` batches and returns their number and outputs."""

    def loop(iterator: DatasetIterator, count: Tensor) -> Nest:
        whole = Outputs(function, None)

        def has_more(index: Tensor, element: Optional, _: Arrays) -> Tensor:
            return tf.logical_and(index < count, element.has_value())

        def body(index: Tensor, element: Optional, state: Arrays) -> tuple[Tensor, Optional, Arrays]:
            outputs = function.call(*element_leaves(element.get_value()))
            # The element after the last wanted one is left to the next reader.
            following = tf.cond(index + 1 < count, iterator.get_next_as_optional, lambda: element)
            return index + 1, following, whole.add(index, outputs, state)

        first = iterator.get_next_as_optional()
        ran, _, state = tf.while_loop(has_more, body, (0, first, whole.empty))
        return ran, whole.join(state)

    compiled: Callable[..., Nest] = tf.function(loop, autograph=False)
    return compiled


class BatchSource(Protocol):
    """Batches that can be run, several in one call."""

    function: BatchFunction

    def run(self, count: int) -> tuple[int, Nest]:
        """Run up to `count` more batches; return how many there were (0 at the end), and their outputs."""

    def has_ended(self) -> bool:
        """Return whether it is known that no batch follows."""

    def close(self) -> None:
        """Stop reading the data."""

    @property
    def most(self) -> int:
        """The largest number of batches worth running in one call."""


class RowSource:
    """Reads arrays, with only a bounded chunk of them on the device at a time."""

    def __init__(self, rows: PredictRows, function: BatchFunction) -> None:
        self.function, self._rows = function, rows
        self._done = 0
        self.most = max(1, _CHUNK_BYTES // max(1, rows.bytes_per_row * rows.batch))

    def run(self, count: int) -> tuple[int, Nest]:
        rows, first = self._rows, self._done
        count = min(count, rows.full_batches - first)
        if count > 1:
            loop = self.function.loop("rows", lambda: loop_over_rows(self.function))
            tensors = rows.tensors(first * rows.batch, (first + count) * rows.batch)
            self._done += count
            return count, loop(tf.constant(rows.batch), tf.constant(count), *tensors)
        if first == rows.batches:
            return 0, None
        self._done += 1
        stop = min((first + 1) * rows.batch, rows.count)
        return 1, self.function.call(*rows.tensors(first * rows.batch, stop))

    def has_ended(self) -> bool:
        return self._done == self._rows.batches

    def close(self) -> None:
        """Arrays need nothing at the end."""


class StreamSource:
    """Reads a dataset's iterator inside the compiled call, or batch by batch if a loop is not worth its trace."""

    most = 4096

    def __init__(self, stream: Stream, steps: int | None, function: BatchFunction) -> None:
        self.function, self._stream, self._steps = function, stream, steps
        self._iterator: DatasetIterator = None
        self._done = 0
        known = stream.batches is not None and not function.has_loop("stream")
        self._short = known and function.single_calls + (stream.batches or 0) <= _WORTH_A_LOOP

    def run(self, count: int) -> tuple[int, Nest]:
        if self._steps is not None and self._stream.batches is not None:
            count = min(count, self._stream.batches - self._done)
        if count == 0:
            return 0, None
        if self._iterator is None:
            self._stream.adapter.on_epoch_begin()
            self._iterator = iter(self._stream.dataset)
        if self._short:
            count = 1
        found, outcome = self._run_one() if self._short else self._run_loop(count)
        self._done += found
        if found < count and self._steps is not None and self._done < self._steps:
            warn_ran_out(self._steps, self._done)
        return found, outcome

    def _run_one(self) -> tuple[int, Nest]:
        element = next(self._iterator, None)
        if element is None:
            return 0, None
        self.function.single_calls += 1
        return 1, self.function.call(*element_leaves(element))

    def _run_loop(self, count: int) -> tuple[int, Nest]:
        loop = self.function.loop("stream", lambda: loop_over_stream(self.function))
        ran, outcome = loop(self._iterator, tf.constant(count))
        return int(ran), outcome

    def has_ended(self) -> bool:
        return self._stream.batches is not None and self._done >= self._stream.batches

    def close(self) -> None:
        self._stream.adapter.on_epoch_end()


def run_all(source: BatchSource, hooks: PredictHooks | None, take: LogsOf) -> int:
    """Run everything; `take` gets the outcome of each call and returns the logs for the callbacks."""
    try:
        with announced.region(announced.LOOP, batch_size=0):
            if hooks is not None and hooks.each_batch:
                return _run_by_execution(source, hooks, take)
            return _run_in_large_calls(source, hooks, take)
    finally:
        source.close()


def _run_in_large_calls(source: BatchSource, hooks: PredictHooks | None, take: LogsOf) -> int:
    length = CallLength(step_seconds=source.function.batch_seconds)
    done = 0
    while not source.has_ended():
        started = clock.now_ns()
        count, outcome = source.run(length.ask(source.most))
        if count == 0:
            break
        seconds = (clock.now_ns() - started) / 1e9
        length.record(count, seconds)
        source.function.batch_seconds = seconds / count
        done += count
        logs = take(outcome)
        if hooks is not None:
            hooks.after_batch(done - 1, logs)
        else:
            announced.tell(announced.BATCHES, batches=count)
    return done


def _run_by_execution(source: BatchSource, hooks: PredictHooks, take: LogsOf) -> int:
    """Call the hooks once per execution of the model, with batches numbered as Keras numbers them."""
    done = first = 0
    while not source.has_ended():
        hooks.before_batch(first)
        outcomes, last = [], first + hooks.per_execution
        # A smaller last batch is a call of its own.
        while done < last and not source.has_ended():
            count, outcome = source.run(last - done)
            if count == 0:
                break
            done += count
            outcomes.append(outcome)
        if not outcomes or not hooks.after_batch(last - 1, take(_join_outputs(outcomes))):
            break
        first = last
    return done


def _join_outputs(outcomes: list[Nest]) -> Nest:
    """Join the outcomes of several calls. For a single batch, an output without rows is a scalar."""
    if len(outcomes) == 1:
        return outcomes[0]

    def join_parts(*parts: Tensor) -> Tensor:
        return tf.concat([part if part.shape.rank else tf.reshape(part, [1]) for part in parts], 0)

    return tf.nest.map_structure(join_parts, *outcomes)
