"""Pipelines of `tf.data` made of parts that the public API does not hand out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute
from tensorflow.python.data.ops import dataset_ops, map_op, shuffle_op, structured_function, unbatch_op

# Structures as `tf.data` sees them: a list is a tensor, unlike in `tf.nest`.
from tensorflow.python.data.util import nest as nest
from tensorflow.python.data.util import structure
from tensorflow.python.ops import script_ops

_patching = threading.RLock()


def from_variant(tensor: Any, spec: Any) -> Any:
    """A dataset of a tensor that some operation made, whose elements have this spec."""
    return dataset_ops._VariantDataset(tensor, spec)


def from_tensors(specs: Any, tensors: list[Any]) -> Any:
    """Tensors, flat, in the structure of these specs."""
    return structure.from_compatible_tensor_list(specs, tensors)


def convert_row(value: Any, dtype: Any) -> Any:
    """An array of what a generator or a Python function in a graph gave, by TensorFlow's rules.

    Raises:
        TypeError, ValueError: it cannot be converted.
    """
    return script_ops.FuncRegistry._convert(value, dtype=dtype)


def map_in_parallel(source: Any, wrapper: Any, preserve_cardinality: bool) -> Any:
    """A parallel map with the function of another stage, which was traced already."""
    with functions_reused():
        return map_op._ParallelMapDataset(
            source, wrapper, tf.data.AUTOTUNE, None, preserve_cardinality=preserve_cardinality
        )


def unbatch_dense(dataset: Any) -> Any:
    """`unbatch()` of dense elements; the public one calls a function for each, for the sake of sparse components."""
    return unbatch_op._UnbatchDataset(dataset)


def batch_size_of(dataset: Any) -> int:
    """Rows in every element of a pipeline, as far as its operations tell; -1 where they do not."""
    return int(distribute.compute_batch_size(dataset))


def shard_by_files(dataset: Any, count: int, index: int) -> Any:
    """The pipeline with every `count`-th file of its readers, or as its options say.

    Raises:
        tf.errors.OpError: it has no readers that TensorFlow knows.
    """
    return distribute._AutoShardDataset(dataset, count, index, count)


@contextlib.contextmanager
def functions_reused() -> Iterator[None]:
    """While this lasts, a stage that is given a traced function takes it as it is instead of tracing it again."""
    original = structured_function.StructuredFunctionWrapper

    class Reusing(original):  # type: ignore[misc, valid-type]
        def __new__(cls, func: Any, *rest: Any, **named: Any) -> Any:
            return func if isinstance(func, original) else object.__new__(cls)

    with _patching:
        structured_function.StructuredFunctionWrapper = Reusing
        try:
            yield
        finally:
            structured_function.StructuredFunctionWrapper = original


class ScalarSource(dataset_ops.DatasetSource):  # type: ignore[misc]
    """A source of int64 numbers that an operation of `tf.raw_ops` makes."""

    def __init__(self, operation: Any, **options: Any) -> None:
        self._name = None
        super().__init__(operation(**options, **self._common_args))

    @property
    def element_spec(self) -> Any:
        return tf.TensorSpec([], tf.int64)


def shuffle_like(stage: Any, source: Any, seeds: tuple[Any, Any] | None = None) -> Any:
    """Another source shuffled as by this stage: with its very seeds, or these. `shuffle(seed=...)` makes other ones."""
    return _Shuffle(stage, source, (stage._seed, stage._seed2) if seeds is None else seeds)


class _Shuffle(shuffle_op._ShuffleDataset):  # type: ignore[misc]
    def __init__(self, like: Any, source: Any, seeds: tuple[Any, Any]) -> None:
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
