"""Datasets, generators and PyDatasets given to predict, as one tf.data pipeline made by Keras."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from stoker.tf_internals.keras_data import adapter_for
from stoker.tf_internals.types import Data, DataAdapter, Nest, Tensor
from stoker.train.execution.epoch_steps import whole_executions
from stoker.train.execution.feed import without_optionals
from stoker.train.execution.structures import Skeleton, flatten
from stoker.train.inference.arrays import check_positive


@dataclass(frozen=True)
class Stream:
    """A pipeline of batches, and Keras' adapter behind it, which can be handed on to Keras."""

    adapter: DataAdapter
    dataset: tf.data.Dataset
    batches: int | None
    skeleton: Skeleton
    leaves: list[tf.TensorSpec]

    @property
    def loopable(self) -> bool:
        """Dense batches of known rank: what a compiled step can be traced for ahead of the data."""
        return all(isinstance(leaf, tf.TensorSpec) and leaf.shape.rank for leaf in self.leaves)


def as_stream(x: Data, batch_size: int | None, steps: int | None, steps_per_execution: int = 1) -> Stream:
    """The data as batches; of `steps` that are no multiple of `steps_per_execution`, the last is run in full."""
    check_positive("steps", steps)
    adapter = adapter_for(x, batch_size=batch_size, steps_per_epoch=steps)
    dataset = adapter.get_tf_dataset()
    leaves: list[Tensor] = []
    skeleton = flatten(without_optionals(dataset.element_spec), leaves)
    if isinstance(x, tf.data.Dataset):
        # A generator is not read ahead: what is left of it belongs to the caller.
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
    batches = adapter.num_batches if steps is None else whole_executions(steps, steps_per_execution)
    return Stream(adapter, dataset, batches, skeleton, leaves)


def element_leaves(element: Nest) -> list[Nest]:
    """The tensors of one element, in the order of `Stream.leaves`."""
    leaves: list[Tensor] = []
    flatten(without_optionals(element), leaves)
    return leaves
