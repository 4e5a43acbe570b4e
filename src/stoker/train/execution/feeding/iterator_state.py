"""Where a tf.data iterator is, as bytes: saved in one process, given to a new iterator of the same pipeline in another.

TensorFlow saves everything an iterator holds (the shuffle buffer included: what it holds is what it costs), except
where the pipeline runs code whose state it cannot see: a generator, `py_function`, `numpy_function`, a stateful random
op in a `map`. There `capture` returns None, and `replay` goes to the same place by drawing the batches again, which is
exact only if the pipeline gives the same batches again.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

import tensorflow as tf

from stoker.errors import CheckpointError
from stoker.tf_internals.datasets import inputs
from stoker.tf_internals.types import Dataset, DatasetIterator

_PREFIX = "iterator"
# A key under which TensorFlow saves the seeds of a shuffle.
_SAVED_SHUFFLE = b"num_random_samples"


def capture(iterator: DatasetIterator) -> bytes | None:
    """The iterator's position; None where TensorFlow cannot save it."""
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
        CheckpointError: the pipeline is another one.
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
            first_line = str(error).splitlines()[0]
            raise CheckpointError(
                f"the data pipeline is not the one the checkpoint was saved with ({first_line}): "
                "build the same one, or give another directory"
            ) from error


def restore_or_replay(iterator: DatasetIterator, blob: bytes, drawn: int) -> None:
    """Move the newest iterator of a dataset to where `blob` was taken, so that later passes have their order too.

    Restoring makes an iterator, which moves the seeds of every shuffle on by one pass, and then sets them to what was
    saved; but a shuffle that had been drawn empty (prefetching does that well before the pass ends) was not saved, and
    would give the next pass the order of the one after it. Where a shuffle is missing, the batches are drawn again.
    """
    if drawn == 0:
        return
    shuffles = _shuffles(capture(iterator))
    replay(iterator, 1)
    # The shuffle before a shuffle exists only once something was drawn.
    if _shuffles(blob) < max(shuffles, _shuffles(capture(iterator))):
        replay(iterator, drawn - 1)
    else:
        restore(iterator, blob)


def _shuffles(blob: bytes | None) -> int:
    return (blob or b"").count(_SAVED_SHUFFLE)


def order_version(dataset: Dataset) -> int:
    """The version of the `stoker.data` readers that ordered the rows of a pipeline; 0 if it was not one of them."""
    version, seen, waiting = 0, set(), [dataset]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            version = max(version, getattr(one, "order_version", 0))
            waiting += inputs(one)
    return version


def check_order_version(dataset: Dataset, saved: int | None) -> None:
    """Refuse to go on in another order than the run began with.

    Args:
        dataset: about to be gone through.
        saved: the version that the checkpoint names; None in one that was written before there were two.

    Raises:
        CheckpointError: the same seed gave other orders and splits then.
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
        CheckpointError: there are fewer.
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
    """Bring a dataset object to where `epochs` passes have left it: a seeded shuffle changes its order at each.

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
