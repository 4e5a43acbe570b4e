"""Names for the types of NumPy, TensorFlow and Keras.

TensorFlow and Keras ship no types that mypy can read, so mypy takes most of these names as `Any`. A signature that says
`Tensor` or `Model` still tells the reader what passes through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    # The doctor uses these names before the program has imported anything.
    import numpy as np

# NumPy
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"  # of any shape and type

# TensorFlow
Tensor: TypeAlias = Any  # tf.Tensor, eager or symbolic
TensorLike: TypeAlias = Any  # what tf.convert_to_tensor takes
DType: TypeAlias = Any  # tf.DType
TensorSpec: TypeAlias = Any  # tf.TensorSpec and the specs of ragged and sparse tensors
Optional: TypeAlias = Any  # tf.experimental.Optional: an element of a dataset, or none
TensorShape: TypeAlias = Any  # tf.TensorShape
Variable: TypeAlias = Any  # tf.Variable, or a Keras variable over one
Nest: TypeAlias = Any  # tensors in tuples, lists and dictionaries, as tf.nest takes them
Dataset: TypeAlias = Any  # tf.data.Dataset
DatasetIterator: TypeAlias = Any  # what iter(dataset) returns
FunctionWrapper: TypeAlias = Any  # a traced function in a stage of a dataset
Strategy: TypeAlias = Any  # tf.distribute.Strategy
CollectiveOptions: TypeAlias = Any  # how workers or devices exchange values
CompiledFunction: TypeAlias = Any  # what tf.function returns
ConcreteFunction: TypeAlias = Any
StageFunction: TypeAlias = Any  # the traced function of a stage, as tf.data keeps it
SavedModelObject: TypeAlias = Any  # what tf.saved_model.load returns
GradientTape: TypeAlias = Any
FunctionType: TypeAlias = Any  # the types of a tf.function's arguments
TracingOptions: TypeAlias = Any  # how TensorFlow traces one tf.function
Graph: TypeAlias = Any
ProfilerSession: TypeAlias = Any
SummaryWriter: TypeAlias = Any  # writes scalars for TensorBoard
TraceMe: TypeAlias = Any  # what puts a mark into the profiler's trace
Operation: TypeAlias = Any  # a node of a graph
ProtoMessage: TypeAlias = Any  # GraphDef, NodeDef and other messages of TensorFlow

# Keras
Model: TypeAlias = Any
Layer: TypeAlias = Any
LayerCall: TypeAlias = Any  # a use of a layer in a functional model
Optimizer: TypeAlias = Any
Loss: TypeAlias = Any
Metric: TypeAlias = Any
Callback: TypeAlias = Any
Callbacks: TypeAlias = Any  # what `callbacks=` takes: a callback, a list of them, or a CallbackList
CallbackList: TypeAlias = Any
EpochIterator: TypeAlias = Any
History: TypeAlias = Any  # what `fit` returns
SeedGenerator: TypeAlias = Any
# What `fit` takes as `x` or `y`: arrays, tensors, nests of them, a dataset, a generator.
Data: TypeAlias = Any
DataAdapter: TypeAlias = Any  # Keras' reader of such data
EvaluateResult: TypeAlias = Any  # the number, the list or the dict that `evaluate` returns
LogValue: TypeAlias = Any  # a tensor, the number read from it, or a dict of these
Verbose: TypeAlias = int | str  # 0, 1, 2 or "auto"
ClassWeight: TypeAlias = Mapping[int, float] | None
