"""The error for a batch that does not fit into memory: it names the largest that fits, and what uses the memory."""

from __future__ import annotations

import tensorflow as tf

from stoker.doctor.memory.watching import watch_call
from stoker.doctor.report.memory import line_of_book
from stoker.errors import StokerError
from stoker.logs import LOGGER
from stoker.tf_internals.types import Nest, Tensor
from stoker.train.execution.feeding.resident import Resident
from stoker.train.execution.feeding.sources import DataSource, on_device
from stoker.train.execution.loop import CompiledLoop
from stoker.train.planning.trials import Snapshot
from stoker.train.program import StepLoops


class BatchTooLargeError(StokerError, MemoryError):
    """A step on this batch needs more memory than there is."""


def make_too_large_error(loops: StepLoops, data: DataSource, parts: int = 1) -> BatchTooLargeError:
    """Return the error to raise, after trying smaller batches; the state is left as it was.

    Args:
        loops: the loops of the steps that ran out of memory.
        data: the data that the steps ran on.
        parts: the number of parts into which batches were cut.
    """
    if parts > 1:
        return BatchTooLargeError(
            f"a batch in {parts} parts does not fit into memory, or a batch of the validation data: give "
            f'plan={{"parts": {2 * parts}}}, or a validation_batch_size'
        )
    if data.rows is None:
        return BatchTooLargeError("a batch does not fit into memory: give a dataset of smaller batches")
    size = int(data.adapter.batch_size)
    fits = find_largest(loops, data, size)
    if fits is not None:
        _tell_owners(loops, data, fits)
    if fits is None:
        return BatchTooLargeError(
            f"batch_size={size} does not fit into memory, and neither does a single row: use a smaller model"
        )
    cuts = bool(tf.config.list_logical_devices("GPU")) and loops.parts_refusal() is None
    instead = ', or memory="auto" to train on this batch in parts' if cuts else ""
    return BatchTooLargeError(
        f"batch_size={size} does not fit into memory: {fits} does (tried by doubling); pass batch_size={fits}{instead}"
    )


def find_largest(loops: StepLoops, data: DataSource, size: int) -> int | None:
    """Return the last of 1, 2, 4, ... below `size` with which a step runs.

    The search starts from below because TensorFlow waits ten seconds for memory before it gives up. This way it does so
    only once.
    """
    fits = None
    tried = 1
    while tried < size and _runs(loops, _first_rows(data.rows, tried), tried):
        fits = tried
        tried *= 2
    return fits


def _tell_owners(loops: StepLoops, data: DataSource, size: int) -> None:
    """Log what uses the device's memory in a step on a batch that fits.

    What grows with the batch is what does not fit.
    """
    if not tf.config.list_logical_devices("GPU"):
        return
    books = watch_call(lambda: _runs(loops, _first_rows(data.rows, size), size))
    for book in books:
        LOGGER.warning("With batch_size=%d, %s", size, line_of_book(book, many=len(books) > 1))


def _runs(loops: StepLoops, rows: Tensor, size: int) -> bool:
    try:
        loop = CompiledLoop(loops.step("train_step"), Resident(on_device(rows), size), eager=loops.eager)
        state = Snapshot.of_step(loop.build())
    except tf.errors.ResourceExhaustedError:
        # Not even the copies for restoring the state fit.
        return False
    try:
        loop.run(0, 1)
    except tf.errors.ResourceExhaustedError:
        return False
    finally:
        state.restore()
    return True


def _first_rows(rows: Tensor, count: int) -> Nest:
    return tf.nest.map_structure(lambda leaf: None if leaf is None else leaf[:count], rows)
