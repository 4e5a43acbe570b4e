"""Names for the types of TensorFlow and Keras.

Neither library ships types that mypy can read, so mypy takes each of these names as `Any`. A signature that says
`Tensor` or `Model` still tells the reader what passes through it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

# TensorFlow
Tensor: TypeAlias = Any  # tf.Tensor, eager or symbolic
TensorLike: TypeAlias = Any  # what tf.convert_to_tensor takes
TensorSpec: TypeAlias = Any  # tf.TensorSpec and the specs of ragged and sparse tensors
Variable: TypeAlias = Any  # tf.Variable, or a Keras variable over one
Nest: TypeAlias = Any  # tensors in tuples, lists and dictionaries, as tf.nest takes them
Dataset: TypeAlias = Any  # tf.data.Dataset
DatasetIterator: TypeAlias = Any  # what iter(dataset) gives
DistributedDataset: TypeAlias = Any
Strategy: TypeAlias = Any  # tf.distribute.Strategy
CompiledFunction: TypeAlias = Any  # what tf.function gives
ConcreteFunction: TypeAlias = Any
Graph: TypeAlias = Any
Operation: TypeAlias = Any  # a node of a graph
ProtoMessage: TypeAlias = Any  # GraphDef, NodeDef and other messages of TensorFlow

# Keras
Model: TypeAlias = Any
Layer: TypeAlias = Any
Optimizer: TypeAlias = Any
Loss: TypeAlias = Any
Metric: TypeAlias = Any
Callback: TypeAlias = Any
