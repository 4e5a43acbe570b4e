"""The place of a tf.data iterator as bytes: saved in one process, restored into a new iterator of the same pipeline.

TensorFlow saves everything that an iterator holds, including the shuffle buffer, whose size is the cost of saving. It
cannot save an iterator if the pipeline runs code with hidden state: a generator, `py_function`, `numpy_function`, a
stateful random op in a `map`. There `capture` returns None, and `replay` reaches the same place by drawing the batches
again, which is exact only if the pipeline gives the same batches again.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

import tensorflow as tf

from stoker.errors import CheckpointError, first_line
from stoker.tf_internals.datasets import inputs
from stoker.tf_internals.types import Dataset, DatasetIterator

_PREFIX = "iterator"
# The key under which TensorFlow saves the seeds of a shuffle.
_SAVED_SHUFFLE = b"num_random_samples"


def capture(iterator: DatasetIterator) -> bytes | None:
    """Return the iterator's position; None if TensorFlow cannot save it."""
    try:
        return _save(iterator)
    except (tf.errors.FailedPreconditionError, tf.errors.UnimplementedError):
        return None


def _save(iterator: DatasetIterator) -> bytes:
    with tempfile.TemporaryDirectory(prefix="stoker-") as directory:
        tf.train.Checkpoint(iterator=iterator).write(str(Path(directory, _PREFIX)))
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(Path(directory).iterdir()):
                archive.add(path, arcname=path.name)
        return packed.getvalue()


def restore(iterator: DatasetIterator, blob: bytes) -> None:
    """Move a fresh iterator of the same pipeline to the saved position.

    Raises:
        CheckpointError: the pipeline is a different one.
    """
    with tempfile.TemporaryDirectory(prefix="stoker-") as directory:
        with tarfile.open(fileobj=io.BytesIO(blob)) as archive:
            for member in archive.getmembers():
                stream = archive.extractfile(member)
                if stream is not None:
                    Path(directory, Path(member.name).name).write_bytes(stream.read())
        try:
            tf.train.Checkpoint(iterator=iterator).read(str(Path(directory, _PREFIX))).assert_consumed()
        except (tf.errors.OpError, AssertionError) as error:
            raise CheckpointError(
                f"the data pipeline is not the one the checkpoint was saved with ({first_line(error)}): "
                "build the same one, or give another directory"
            ) from error


def restore_or_replay(iterator: DatasetIterator, blob: bytes, drawn: int) -> None:
    """Move the newest iterator of a dataset to where `blob` was taken, so that later passes keep their order too.

    To restore, TensorFlow makes an iterator, which advances the seeds of every shuffle by one pass, and then sets them
    to the saved values. But a shuffle that had been drawn empty (prefetching does that well before the pass ends) was
    not saved, so the next pass would get the order of the one after it. If a shuffle is missing, the batches are drawn
    again.
    """
    if drawn == 0:
        return
    shuffles = _shuffles(capture(iterator))
    replay(iterator, 1)
    # A shuffle before another one exists only after the first draw.
    if _shuffles(blob) < max(shuffles, _shuffles(capture(iterator))):
        replay(iterator, drawn - 1)
    else:
        restore(iterator, blob)


def _shuffles(blob: bytes | None) -> int:
    return (blob or b"").count(_SAVED_SHUFFLE)


def order_version(dataset: Dataset) -> int:
    """Return the version of the `stoker.data` readers that ordered the rows of a pipeline; 0 if none of them did."""
    version, seen, waiting = 0, set(), [dataset]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            version = max(version, getattr(one, "order_version", 0))
            waiting += inputs(one)
    return version


def check_order_version(dataset: Dataset, saved: int | None) -> None:
    """Refuse to continue in an order other than the one the run began with.

    Args:
        dataset: the dataset to read.
        saved: the version that the checkpoint names; None in a checkpoint from before there were two versions.

    Raises:
        CheckpointError: with that version, the same seed gave other orders and splits.
    """
    version = order_version(dataset)
    if version and saved != 0 and saved != version:
        raise CheckpointError(
            "the checkpoint is from an earlier version of Stoker, which shuffled and split these rows differently: "
            "finish this run with that version, or start again in another directory"
        )


def replay(iterator: DatasetIterator, count: int) -> None:
    """Draw and drop `count` batches.

    Raises:
        CheckpointError: there are fewer batches.
    """
    for drawn in range(count):
        try:
            next(iterator)
        except StopIteration:
            raise CheckpointError(
                f"the data ended after {drawn} batches, the checkpoint was saved after {count}: "
                "give the same data, or another directory"
            ) from None


def skip_epochs(dataset: Dataset, epochs: int) -> None:
    """Bring a dataset object to where `epochs` passes leave it: a seeded shuffle changes its order with each pass.

    Making an iterator is enough, except for a shuffle before another one, which is made at the first draw.
    """
    late = False
    for number in range(epochs):
        iterator = iter(dataset)
        made = _shuffles(capture(iterator)) if number == 0 else 0
        if late or made:
            replay(iterator, 1)
        if made:
            late = _shuffles(capture(iterator)) > made
