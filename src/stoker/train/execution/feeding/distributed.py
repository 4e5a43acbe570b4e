"""Datasets that a strategy has distributed already: the rows of each replica come in a batch of their own.

`strategy.experimental_distribute_dataset` and `strategy.distribute_datasets_from_function` make them. With one replica
their batches are plain tensors; with several, every leaf of a batch holds one tensor for each replica.
"""

from __future__ import annotations

import tensorflow as tf

from stoker.tf_internals.distribution import replica_specs
from stoker.tf_internals.types import Data, Dataset, Nest, Tensor
from stoker.train.execution.feeding.streamed import Streamed


class Distributed(Streamed):
    """The batches of a distributed dataset.

    TensorFlow may count the batches of one replica where it should count those of all of them, so `steps` is what Keras
    shows, and only running out tells how many there are.
    """

    @property
    def counted(self) -> bool:
        return False


def is_distributed(x: Data) -> bool:
    """Whether a strategy has distributed the dataset."""
    return isinstance(x, tf.distribute.DistributedDataset)


def replicas_of(dataset: Dataset) -> int:
    """For how many replicas a distributed dataset has batches."""
    return max(len(replica_parts(leaf)) for leaf in tf.nest.flatten(dataset.element_spec))


def global_batch_size(dataset: Dataset) -> int | None:
    """Rows in a batch of all replicas together; None where they are not known beforehand."""
    sizes = [part.shape[0] for part in replica_parts(tf.nest.flatten(dataset.element_spec)[0])]
    return None if None in sizes else sum(sizes)


def replica_parts(leaf: Tensor) -> list[Nest]:
    """What each replica gets of a leaf of a batch, or of its spec: the leaf itself where it is not distributed."""
    specs = replica_specs(leaf)
    if specs is not None:
        return specs
    return list(leaf.values) if isinstance(leaf, tf.distribute.DistributedValues) else [leaf]


def first_part(batch: Nest) -> Nest:
    """The batch (or its spec) as the first replica sees it."""
    return tf.nest.map_structure(lambda leaf: replica_parts(leaf)[0], batch)


def has_parts(batch: Nest) -> bool:
    """Whether a batch has the rows of each replica apart."""
    return any(isinstance(leaf, tf.distribute.DistributedValues) for leaf in tf.nest.flatten(batch))
