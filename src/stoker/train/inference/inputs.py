"""The data given to predict: arrays, converted as Keras does and cut into batches; or a tf.data pipeline."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.graphs import is_composite
from stoker.tf_internals.keras_data import adapter_for, check_arrays, to_sliceable
from stoker.tf_internals.keras_data import is_arrays as is_arrays
from stoker.tf_internals.types import Array, Data, DataAdapter, Nest, Tensor
from stoker.train.execution.batch_function import Skeleton, flatten
from stoker.train.execution.epoch_steps import whole_executions
from stoker.train.execution.feed import replace_optionals
from stoker.units import quantity

DEFAULT_BATCH = 32
_STRING_BYTES = 64  # the assumed size of a string when a chunk is sized


@dataclass(frozen=True)
class PredictRows:
    """Dense arrays of equal length, the number of their rows to predict, and the batch size."""

    skeleton: Skeleton
    leaves: list[Array | Tensor]
    count: int
    batch: int

    @property
    def batches(self) -> int:
        return -(-self.count // self.batch)

    @property
    def full_batches(self) -> int:
        return self.count // self.batch

    @property
    def bytes_per_row(self) -> int:
        return sum(_bytes_per_row(leaf) for leaf in self.leaves)

    def tensors(self, start: int, stop: int) -> list[Tensor]:
        """Rows `start` to `stop` on the device."""
        if start == 0 and stop >= len(self.leaves[0]):
            return [tf.convert_to_tensor(leaf) for leaf in self.leaves]
        return [tf.convert_to_tensor(leaf[start:stop]) for leaf in self.leaves]


def make_rows(
    x: Data, batch_size: int | None, steps: int | None, steps_per_execution: int = 1
) -> PredictRows | None:
    """Return the arrays as rows; None if one is ragged or sparse, which only Keras' own pipeline can slice.

    If `steps` is not a multiple of `steps_per_execution`, the last execution runs in full, as in Keras.
    """
    check_positive("batch_size", batch_size)
    check_positive("steps", steps)
    data = x
    if type(x) is not np.ndarray:
        _check_rows(x)
        data = check_arrays(x)
    leaves: list[Tensor] = []
    skeleton = flatten(data, leaves)
    leaves = [_convert(leaf) for leaf in leaves]
    if not leaves or any(is_composite(leaf) for leaf in leaves):
        return None
    rows = int(leaves[0].shape[0])
    batch = batch_size or (max(1, -(-rows // steps)) if steps else DEFAULT_BATCH)
    return PredictRows(skeleton, leaves, _count_wanted(rows, batch, steps, steps_per_execution), batch)


def check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ArgumentError(f"{name} must be 1 or more, got {value!r}; leave it out for the default")


def _check_rows(data: Data) -> None:
    leaves: list[Tensor] = []
    flatten(data, leaves)
    for leaf in leaves:
        if isinstance(leaf, (np.ndarray, np.generic, tf.Tensor)) and len(leaf.shape) == 0:
            raise ArgumentError(
                f"arrays must have rows along their first axis, got {leaf!r}; for a single row, pass x[None]"
            )


def warn_ran_out(steps: int, found: int) -> None:
    """Warn that a dataset ended before the requested number of steps."""
    warnings.warn(f"the data ended after {found} of {quantity(steps, 'step')}", stacklevel=4)


def _count_wanted(rows: int, batch: int, steps: int | None, steps_per_execution: int) -> int:
    if steps is None:
        return rows
    if steps > -(-rows // batch):
        warn_ran_out(steps, -(-rows // batch))
    return min(rows, whole_executions(steps, steps_per_execution) * batch)


def _convert(leaf: Data) -> Array | Tensor:
    """Convert as Keras does: floats to floatx, strings to string tensors, frames to arrays."""
    if type(leaf) is np.ndarray and leaf.dtype == keras.config.floatx():
        return leaf
    if type(leaf) is np.ndarray and _is_text(leaf):
        return tf.constant(leaf)
    converted = to_sliceable(leaf)
    if is_composite(converted):
        return converted
    if isinstance(converted, np.ndarray) and converted.dtype.kind not in "OSU":
        return converted
    # As an array, strings cost a conversion at every slice; as a tensor, they cost none.
    return tf.convert_to_tensor(converted)


def _is_text(array: Array) -> bool:
    if array.dtype.kind in "SU":
        return True
    return array.dtype.kind == "O" and all(isinstance(one, (str, bytes)) for one in array.flat)


def _bytes_per_row(leaf: Array | Tensor) -> int:
    dtype = tf.as_dtype(leaf.dtype)
    return int(math.prod(leaf.shape[1:])) * (_STRING_BYTES if dtype == tf.string else int(dtype.size))


@dataclass(frozen=True)
class Stream:
    """A pipeline of batches, and the Keras adapter behind it, which can be passed on to Keras."""

    adapter: DataAdapter
    dataset: tf.data.Dataset
    batches: int | None
    skeleton: Skeleton
    leaves: list[tf.TensorSpec]

    @property
    def loopable(self) -> bool:
        """Whether batches are dense and of known rank, so that a compiled step can be traced before reading data."""
        return all(isinstance(leaf, tf.TensorSpec) and leaf.shape.rank for leaf in self.leaves)


def make_stream(x: Data, batch_size: int | None, steps: int | None, steps_per_execution: int = 1) -> Stream:
    """Return the data as batches.

    If `steps` is not a multiple of `steps_per_execution`, the last execution runs in full.
    """
    check_positive("steps", steps)
    adapter = adapter_for(x, batch_size=batch_size, steps_per_epoch=steps)
    dataset = adapter.get_tf_dataset()
    leaves: list[Tensor] = []
    skeleton = flatten(replace_optionals(dataset.element_spec), leaves)
    if isinstance(x, tf.data.Dataset):
        # A generator is not read ahead, because the rest of it belongs to the caller.
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
    batches = adapter.num_batches if steps is None else whole_executions(steps, steps_per_execution)
    return Stream(adapter, dataset, batches, skeleton, leaves)


def element_leaves(element: Nest) -> list[Nest]:
    """Return the tensors of one element, in the order of `Stream.leaves`."""
    leaves: list[Tensor] = []
    flatten(replace_optionals(element), leaves)
    return leaves
