"""Builds `tf.data` pipelines from parts that the public API does not hand out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute
from tensorflow.python.data.ops import dataset_ops, map_op, shuffle_op, structured_function, unbatch_op

# Structures as `tf.data` sees them: unlike in `tf.nest`, a list is a tensor.
from tensorflow.python.data.util import nest as nest
from tensorflow.python.data.util import structure
from tensorflow.python.ops import script_ops

from stoker.tf_internals.types import Array, Dataset, FunctionWrapper, Nest, Tensor, TensorLike, TensorSpec

_patching = threading.RLock()


def from_variant(tensor: Tensor, spec: TensorSpec) -> Dataset:
    """Return the dataset in a tensor that some operation made, with elements of this spec."""
    return dataset_ops._VariantDataset(tensor, spec)


def from_tensors(specs: Nest, tensors: list[Tensor]) -> Nest:
    """Arrange flat tensors in the structure of these specs."""
    return structure.from_compatible_tensor_list(specs, tensors)


def convert_row(value: TensorLike, dtype: Any) -> Array:
    """Convert a value from a generator, or from a Python function in a graph, to an array by TensorFlow's rules.

    Raises:
        TypeError, ValueError: the value cannot be converted.
    """
    row: Array = script_ops.FuncRegistry._convert(value, dtype=dtype)
    return row


def map_in_parallel(source: Dataset, wrapper: FunctionWrapper, preserve_cardinality: bool) -> Dataset:
    """Add a parallel map with the function of another stage, which is already traced."""
    with functions_reused():
        return map_op._ParallelMapDataset(
            source, wrapper, tf.data.AUTOTUNE, None, preserve_cardinality=preserve_cardinality
        )


def unbatch_dense(dataset: Dataset) -> Dataset:
    """`unbatch()` for dense elements.

    The public one calls a function for each element, because of sparse components.
    """
    return unbatch_op._UnbatchDataset(dataset)


def batch_size_of(dataset: Dataset) -> int:
    """Return the rows in every element of a pipeline, if its operations show that; otherwise -1."""
    try:
        return int(distribute.compute_batch_size(dataset))
    except IndexError:
        # The elements are single numbers or texts.
        return -1


def shard_by_files(dataset: Dataset, count: int, index: int) -> Dataset:
    """Return the pipeline with every `count`-th file of its readers, or divided as its options say.

    Raises:
        tf.errors.OpError: the pipeline has no readers that TensorFlow knows.
    """
    return distribute._AutoShardDataset(dataset, count, index, count)


@contextlib.contextmanager
def functions_reused() -> Iterator[None]:
    """Let stages that are given a traced function use it as it is, instead of tracing it again, within the block."""
    original = structured_function.StructuredFunctionWrapper

    class Reusing(original):  # type: ignore[misc, valid-type]
        def __new__(cls, func: FunctionWrapper, *rest: object, **named: object) -> FunctionWrapper:
            return func if isinstance(func, original) else object.__new__(cls)

    with _patching:
        structured_function.StructuredFunctionWrapper = Reusing
        try:
            yield
        finally:
            structured_function.StructuredFunctionWrapper = original


class ScalarSource(dataset_ops.DatasetSource):
    """A source of int64 numbers that an operation of `tf.raw_ops` makes."""

    def __init__(self, operation: Callable[..., Tensor], **options: object) -> None:
        self._name = None
        super().__init__(operation(**options, **self._common_args))

    @property
    def element_spec(self) -> TensorSpec:
        return tf.TensorSpec([], tf.int64)


def shuffle_like(stage: Dataset, source: Dataset, seeds: tuple[Tensor, Tensor] | None = None) -> Dataset:
    """Shuffle another source as this stage does, with the same seeds or with these.

    `shuffle(seed=...)` makes new ones.
    """
    return _Shuffle(stage, source, (stage._seed, stage._seed2) if seeds is None else seeds)


class _Shuffle(shuffle_op._ShuffleDataset):
    def __init__(self, like: Dataset, source: Dataset, seeds: tuple[Tensor, Tensor]) -> None:
        self._input_dataset = source
        self._buffer_size = like._buffer_size
        self._seed, self._seed2 = (tf.convert_to_tensor(seed, tf.int64) for seed in seeds)
        self._reshuffle_each_iteration = like._reshuffle_each_iteration
        self._name = like._name
        tensor = tf.raw_ops.ShuffleDatasetV3(
            input_dataset=source._variant_tensor,
            buffer_size=self._buffer_size,
            seed=self._seed,
            seed2=self._seed2,
            seed_generator=tf.raw_ops.DummySeedGenerator(),
            reshuffle_each_iteration=self._reshuffle_each_iteration,
            **self._common_args,
        )
        dataset_ops.UnaryUnchangedStructureDataset.__init__(self, source, tensor)
