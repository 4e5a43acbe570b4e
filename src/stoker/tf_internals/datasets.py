"""Reads the stages of a `tf.data` pipeline: their inputs and arguments. The public API can only build pipelines.

A stage is a dataset object, which keeps its arguments in private attributes of the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stoker.tf_internals.types import Dataset, FunctionWrapper, ProtoMessage, Tensor, TensorSpec

_MISSING = object()


def inputs(stage: Dataset) -> list[Dataset]:
    """Return the stages that a stage reads from."""
    return list(stage._inputs())


def functions(stage: Dataset) -> list[FunctionWrapper]:
    """Return the wrappers of a stage's functions: `function` is the traced one, `output_structure` its specs."""
    return list(stage._functions())


def map_function(stage: Dataset) -> FunctionWrapper:
    """Return the wrapper of the function of a map, interleave, flat_map, filter or the like; None for other stages."""
    return getattr(stage, "_map_func", getattr(stage, "_predicate", None))


def python_function(wrapper: FunctionWrapper) -> Callable[..., object]:
    """Return the Python function in a wrapper, as the user passed it."""
    function: Callable[..., object] = wrapper._func
    return function


def has_argument(stage: Dataset, name: str) -> bool:
    """Return whether a stage has kept an argument."""
    return hasattr(stage, f"_{name}")


def argument(stage: Dataset, name: str, default: object = _MISSING) -> Any:
    """Return an argument with which a stage was made, often as a tensor.

    Raises:
        AttributeError: the dataset has not kept the argument, and there is no default.
    """
    return getattr(stage, f"_{name}") if default is _MISSING else getattr(stage, f"_{name}", default)


def generator_behind(state: Any) -> Callable[..., Iterable[object]]:
    """Return the user's function in the state that `from_generator` keeps in its closures."""
    generator: Callable[..., Iterable[object]] = state._generator
    return generator


def graph_of(stage: Dataset) -> ProtoMessage:
    """Return a pipeline as a graph of operations."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(stage._as_serialized_graph().numpy())
    return graph


def variant(dataset: Dataset) -> Tensor:
    """Return the tensor that represents a dataset or an Optional in TensorFlow's own operations."""
    return dataset._variant_tensor


def batch_spec(spec: TensorSpec) -> TensorSpec:
    """Return the spec of a batch of such elements, of any size."""
    return spec._batch(None)
