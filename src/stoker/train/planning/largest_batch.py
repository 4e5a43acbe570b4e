"""The error for a batch that does not fit into memory: it names the largest that does."""

from __future__ import annotations

import tensorflow as tf

from stoker.errors import StokerError
from stoker.tf_internals.types import Nest, Tensor
from stoker.train.execution.feeding.resident import Resident
from stoker.train.execution.feeding.sources import DataSource, on_device
from stoker.train.execution.loop import CompiledLoop
from stoker.train.planning.trials import Snapshot
from stoker.train.program import StepLoops


class BatchTooLargeError(StokerError, MemoryError):
    """A step on this batch needs more memory than there is."""


def too_large(loops: StepLoops, data: DataSource) -> BatchTooLargeError:
    """The error to raise, after trying smaller batches; the state is left as it was."""
    if data.rows is None:
        return BatchTooLargeError("a batch does not fit into memory: give a dataset of smaller batches")
    size = int(data.adapter.batch_size)
    fits = largest(loops, data, size)
    if fits is None:
        return BatchTooLargeError(
            f"batch_size={size} does not fit into memory, and neither does a single row: use a smaller model"
        )
    return BatchTooLargeError(
        f"batch_size={size} does not fit into memory: {fits} does (tried by doubling); pass batch_size={fits}"
    )


def largest(loops: StepLoops, data: DataSource, size: int) -> int | None:
    """The last of 1, 2, 4, ... below `size` with which a step runs.

    From below, because TensorFlow waits ten seconds for memory before it gives up: this way it does so once.
    """
    fits = None
    tried = 1
    while tried < size and _runs(loops, _first_rows(data.rows, tried), tried):
        fits = tried
        tried *= 2
    return fits


def _runs(loops: StepLoops, rows: Tensor, size: int) -> bool:
    try:
        loop = CompiledLoop(loops.step("train_step"), Resident(on_device(rows), size), eager=loops.eager)
        state = Snapshot.of_step(loop.build())
    except tf.errors.ResourceExhaustedError:
        # Not even the copies that put the state back.
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
