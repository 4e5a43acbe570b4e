"""The data given to `fit`, as feeds: arrays and tensors become rows, everything else a stream.

Keras' own data adapters read the arguments. So this module takes and refuses exactly what `model.fit` does, with the
same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from stoker import units
from stoker.errors import ArgumentError
from stoker.tf_internals import keras_data
from stoker.tf_internals.types import Array, ClassWeight, Data, DataAdapter, Nest, Tensor
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding import memory
from stoker.train.execution.feeding.resident import Resident
from stoker.train.execution.feeding.streamed import (
    Distributed,
    Streamed,
    StreamedRows,
    global_batch_size,
    is_distributed,
)


@dataclass(frozen=True)
class DataSource:
    """Data as the user gave it, read by Keras' adapter.

    Attributes:
        adapter: Keras' reader, which is notified when epochs begin and end.
        rows: the data as dense rows; None for data that must be streamed.
        steps_per_epoch: the number asked for.
        why_streamed: the reason for the plan, if there are no rows.
    """

    adapter: DataAdapter
    rows: Nest
    steps_per_epoch: int | None
    why_streamed: str = ""

    @property
    def bytes(self) -> int:
        return sum(
            int(np.prod(leaf.shape)) * tf.as_dtype(leaf.dtype).size
            for leaf in keras.tree.flatten(self.rows)
            if leaf is not None
        )

    @property
    def batch_size(self) -> int | None:
        """The rows in a batch; None if that is not known beforehand."""
        dataset = keras_data.dataset_in(self.adapter)
        size = global_batch_size(dataset) if is_distributed(dataset) else self.adapter.batch_size
        return None if size is None else int(size)

    def fingerprint(self) -> str:
        """Return a readable summary of the data.

        A run cannot resume from the checkpoint of one with a different summary.
        """
        if self.rows is None:
            return f"{self.why_streamed}, steps_per_epoch={self.steps_per_epoch}"
        shapes = [tuple(leaf.shape) for leaf in keras.tree.flatten(self.rows) if leaf is not None]
        return (
            f"rows={shapes[0][0]}, batch_size={self.adapter.batch_size}, "
            f"shuffle={keras_data.array_shuffle(self.adapter)}, steps_per_epoch={self.steps_per_epoch}"
        )

    def explain_too_large(self) -> str | None:
        """Return why the rows do not fit on the device; None if they do."""
        if self.rows is None:
            return self.why_streamed
        size, room = self.bytes, memory.room_for_data()
        return f"{units.size(size)} of data, room for {units.size(room)}" if size > room else None

    def feed_to_test(self) -> BatchFeed:
        """Return the feed of an evaluation: one compiled loop serves any number of rows."""
        return self.feed("resident" if self.explain_too_large() is None else "streamed", 0, any_rows=True)

    def feed(self, kind: str, seed: int, *, any_rows: bool = False) -> BatchFeed:
        """Return the feed of this kind; see `Resident` for `any_rows`."""
        if self.rows is None:
            dataset = self.adapter.get_tf_dataset()
            stream = Distributed if is_distributed(dataset) else Streamed
            return stream(dataset, self.adapter.num_batches)
        size, shuffle = int(self.adapter.batch_size), keras_data.array_shuffle(self.adapter)
        if kind == "streamed":
            return StreamedRows(self.rows, size, shuffle=shuffle, seed=seed)
        return Resident(on_device(self.rows), size, shuffle=shuffle, seed=seed, any_rows=any_rows)


def source(
    x: Data,
    y: Data = None,
    sample_weight: Data = None,
    *,
    batch_size: int | None = None,
    steps_per_epoch: int | None = None,
    shuffle: bool | str = False,
    class_weight: ClassWeight = None,
    name: str = "x",
    empty: str | None = None,
) -> DataSource:
    """Read the arguments that say what to run over. `name` is the user's word for them, `empty` an error to raise."""
    if x is None:
        raise ArgumentError(f"{name} is missing: give arrays, tensors, a tf.data.Dataset or a PyDataset")
    cap = keras.config.max_steps_per_epoch()
    if cap and (not steps_per_epoch or cap < steps_per_epoch):
        steps_per_epoch = cap
    adapter = keras_data.adapter_for(
        x,
        y=y,
        sample_weight=sample_weight,
        batch_size=batch_size,
        steps_per_epoch=steps_per_epoch,
        shuffle=shuffle,
        class_weight=class_weight,
    )
    given = keras_data.array_inputs(adapter)
    if given is None:
        return DataSource(adapter, None, steps_per_epoch, f"the data is a {_describe(x)}")
    leaves = [_dense(leaf) for leaf in keras.tree.flatten(given)]
    if adapter.num_batches == 0:
        raise ArgumentError(empty or f"{name} has no rows")
    if any(leaf is _NOT_DENSE for leaf in leaves):
        return DataSource(adapter, None, steps_per_epoch, "the data is sparse or ragged")
    rows = keras.tree.pack_sequence_as(given, leaves)
    return DataSource(adapter, keras.tree.lists_to_tuples(rows), steps_per_epoch)


def validation_parts(validation_data: Data) -> tuple[Data, Data, Data]:
    """Return x, y and the weights of `validation_data`."""
    parts: tuple[Data, Data, Data] = keras.utils.unpack_x_y_sample_weight(validation_data)
    return parts


def split(x: Data, y: Data, sample_weight: Data, share: float) -> tuple[tuple[Data, Data, Data], Data]:
    """Split off the last `share` of the rows for validation, as Keras does."""
    return keras_data.split_for_validation((x, y, sample_weight), share)


def on_device(rows: Nest) -> Nest:
    """Put rows on the default device as tensors. Text stays on the host, where all ops on text run."""

    def put(leaf: Array | Tensor) -> tf.Tensor:
        with tf.device("CPU" if tf.as_dtype(leaf.dtype) == tf.string else None):
            return tf.identity(tf.convert_to_tensor(leaf))

    return keras.tree.map_structure(lambda leaf: None if leaf is None else put(leaf), rows)


_NOT_DENSE = object()


def _dense(leaf: Data) -> Any:
    """Return the array or tensor with floats as Keras wants them, or `_NOT_DENSE`."""
    if leaf is None:
        return None
    ready = keras_data.to_sliceable(leaf)
    if isinstance(ready, np.ndarray):
        return tf.convert_to_tensor(ready) if ready.dtype.kind in "USO" else ready
    if isinstance(ready, tf.Tensor) and ready.shape.is_fully_defined():
        return ready
    return _NOT_DENSE


def _describe(x: Data) -> str:
    if is_distributed(x):
        return "distributed dataset"
    if isinstance(x, tf.data.Dataset):
        return "tf.data.Dataset"
    return "PyDataset" if isinstance(x, keras.utils.PyDataset) else type(x).__name__
