"""One pass of predict over rows or a stream: calls, callbacks, the end of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import tensorflow as tf

from stoker import clock
from stoker.doctor.attach import announced
from stoker.tf_internals.types import DatasetIterator, Nest, Tensor
from stoker.train.execution.batch_function import BatchFunction
from stoker.train.execution.call_length import CallLength
from stoker.train.inference.arrays import Rows, ran_out
from stoker.train.inference.batch_loops import Outcome, loop_over_rows, loop_over_stream
from stoker.train.inference.callbacks import PredictHooks
from stoker.train.inference.streams import Stream, element_leaves

_CHUNK_BYTES = 64 << 20
# Of a short dataset: tracing a loop takes longer than calling the function of one batch so many times.
_WORTH_A_LOOP = 32


class Source(Protocol):
    """Batches that can be run, several in one call."""

    function: BatchFunction

    def run(self, count: int) -> tuple[int, Nest]:
        """Runs up to `count` more; how many there were (0 at the end), and what came out."""

    def ended(self) -> bool:
        """Is it known that there is no further batch?"""

    def close(self) -> None:
        """The data is not read any further."""

    @property
    def most(self) -> int:
        """The largest number worth putting into one call."""


class RowSource:
    """Arrays, a bounded chunk of them on the device at a time."""

    def __init__(self, rows: Rows, function: BatchFunction, outcome: Outcome) -> None:
        self.function, self._rows, self._outcome = function, rows, outcome
        self._done = 0
        self.most = max(1, _CHUNK_BYTES // max(1, rows.bytes_per_row * rows.batch))

    def run(self, count: int) -> tuple[int, Nest]:
        rows, first = self._rows, self._done
        count = min(count, rows.full_batches - first)
        if count > 1:
            loop = self.function.loop("rows", lambda: loop_over_rows(self.function, self._outcome))
            tensors = rows.tensors(first * rows.batch, (first + count) * rows.batch)
            self._done += count
            return count, loop(tf.constant(rows.batch), tf.constant(count), *tensors)
        if first == rows.batches:
            return 0, None
        self._done += 1
        stop = min((first + 1) * rows.batch, rows.count)
        return 1, self.function.call(*rows.tensors(first * rows.batch, stop))

    def ended(self) -> bool:
        return self._done == self._rows.batches

    def close(self) -> None:
        """Arrays need nothing at the end."""


class StreamSource:
    """A dataset's iterator, read inside the compiled call; batch by batch where a loop is not worth its trace."""

    most = 4096

    def __init__(self, stream: Stream, steps: int | None, function: BatchFunction, outcome: Outcome) -> None:
        self.function, self._stream, self._steps = function, stream, steps
        self._outcome = outcome
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
            ran_out(self._steps, self._done)
        return found, outcome

    def _run_one(self) -> tuple[int, Nest]:
        element = next(self._iterator, None)
        if element is None:
            return 0, None
        self.function.single_calls += 1
        return 1, self.function.call(*element_leaves(element))

    def _run_loop(self, count: int) -> tuple[int, Nest]:
        loop = self.function.loop("stream", lambda: loop_over_stream(self.function, self._outcome))
        ran, outcome = loop(self._iterator, tf.constant(count))
        return int(ran), outcome

    def ended(self) -> bool:
        return self._stream.batches is not None and self._done >= self._stream.batches

    def close(self) -> None:
        self._stream.adapter.on_epoch_end()


def run_all(source: Source, hooks: PredictHooks | None, take: Callable[[Nest], dict[str, Nest]]) -> int:
    """Runs everything; `take` gets the outcome of each call and returns the logs for the callbacks."""
    try:
        with announced.region(announced.LOOP, batch_size=0):
            if hooks is not None and hooks.each_batch:
                return _by_execution(source, hooks, take)
            return _in_large_calls(source, hooks, take)
    finally:
        source.close()


def _in_large_calls(
    source: Source, hooks: PredictHooks | None, take: Callable[[Nest], dict[str, Nest]]
) -> int:
    length = CallLength(step_seconds=source.function.batch_seconds)
    done = 0
    while not source.ended():
        started = clock.now_ns()
        count, outcome = source.run(length.ask(source.most))
        if count == 0:
            break
        seconds = (clock.now_ns() - started) / 1e9
        length.took(count, seconds)
        source.function.batch_seconds = seconds / count
        done += count
        logs = take(outcome)
        if hooks is not None:
            hooks.after_batch(done - 1, logs)
        else:
            announced.tell(announced.BATCHES, batches=count)
    return done


def _by_execution(source: Source, hooks: PredictHooks, take: Callable[[Nest], dict[str, Nest]]) -> int:
    """As many batches between two hooks as the model has steps an execution, numbered as Keras numbers them."""
    done = first = 0
    while not source.ended():
        hooks.before_batch(first)
        outcomes, last = [], first + hooks.per_execution
        # A smaller last batch is a call of its own.
        while done < last and not source.ended():
            count, outcome = source.run(last - done)
            if count == 0:
                break
            done += count
            outcomes.append(outcome)
        if not outcomes or not hooks.after_batch(last - 1, take(_together(outcomes))):
            break
        first = last
    return done


def _together(outcomes: list[Nest]) -> Nest:
    """The outcomes of several calls as one; of a single batch, what has no rows is a scalar."""
    if len(outcomes) == 1:
        return outcomes[0]

    def joined(*parts: Tensor) -> Tensor:
        return tf.concat([part if part.shape.rank else tf.reshape(part, [1]) for part in parts], 0)

    return tf.nest.map_structure(joined, *outcomes)
