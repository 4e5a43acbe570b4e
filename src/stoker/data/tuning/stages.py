"""The stages of a pipeline, read from its Python objects: what each is called, where its function was written."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from stoker.data.tuning import generators
from stoker.tf_internals import datasets
from stoker.tf_internals.datasets import functions as functions
from stoker.tf_internals.datasets import inputs as inputs
from stoker.tf_internals.pipelines import nest

_OWN_NAMES = {
    "TensorSlice": "from_tensor_slices",
    "Tensor": "from_tensors",
    "TFRecord": "TFRecordDataset",
    "TextLine": "TextLineDataset",
    "FixedLengthRecord": "FixedLengthRecordDataset",
}
_SHOWN = ("batch_size", "buffer_size", "count", "cycle_length", "block_length", "num_parallel_calls")


def kind(dataset: Any) -> str:
    """The class of a stage without its trimmings: `ParallelMap`, `Batch`, `TensorSlice`."""
    return re.sub(r"Dataset(V\d)?$", "", type(dataset).__name__.lstrip("_"))


def below(dataset: Any) -> Iterator[Any]:
    """A stage and all it reads, each once, sources first."""
    seen: set[int] = set()

    def visit(one: Any) -> Iterator[Any]:
        if id(one) in seen:
            return
        seen.add(id(one))
        for source in inputs(one):
            yield from visit(source)
        yield one

    yield from visit(dataset)


def is_generator(dataset: Any) -> bool:
    """Whether this stage is the `flat_map` that `from_generator` makes."""
    if kind(dataset) != "FlatMap":
        return False
    function = datasets.python_function(datasets.map_function(dataset))
    return "from_generator" in getattr(function, "__qualname__", "")


def name(dataset: Any) -> str:
    """What its user called it: `map`, `batch`, `from_generator`."""
    if is_generator(dataset):
        return "from_generator"
    plain = kind(dataset)
    if plain in _OWN_NAMES:
        return _OWN_NAMES[plain]
    plain = plain.removeprefix("Parallel")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", plain).lower()


def arguments(dataset: Any) -> dict[str, Any]:
    """The arguments worth showing; -1 is said as what it means."""
    found: dict[str, Any] = {}
    for argument in _SHOWN:
        value = constant(datasets.argument(dataset, argument, None))
        if value is None:
            continue
        tuned = argument in ("num_parallel_calls", "buffer_size", "cycle_length")
        found[argument] = "AUTOTUNE" if tuned and value == tf.data.AUTOTUNE else value
    return found


def constant(value: Any) -> Any:
    """A Python number where TensorFlow keeps one as an eager scalar; anything else as it is."""
    if not isinstance(value, tf.Tensor) or not hasattr(value, "numpy") or value.shape.rank != 0:
        return value
    return value.numpy().item() if value.dtype.is_integer or value.dtype.is_bool else value


def function_site(dataset: Any) -> str | None:
    """`scale at train.py:12`: the user's function of a stage, if it has one."""
    wrapper = datasets.map_function(dataset)
    if wrapper is None:
        return None
    given = datasets.python_function(wrapper)
    if is_generator(dataset):
        source = generators.source(dataset)
        if source is None:
            return None
        given = source.generator
    function = inspect.unwrap(getattr(given, "python_function", given))
    code = getattr(function, "__code__", None)
    called = getattr(function, "__name__", type(function).__name__)
    if code is None:
        return str(called)
    return f"{called} at {Path(code.co_filename).name}:{code.co_firstlineno}"


def described(dataset: Any) -> str:
    """`map(scale at train.py:12)`, `batch(32)`: a stage in a few words."""
    given = arguments(dataset)
    site = function_site(dataset)
    words = [site] if site else []
    words += [
        str(value) if key in ("batch_size", "buffer_size", "count") else f"{key}={value}"
        for key, value in given.items()
    ]
    return f"{name(dataset)}({', '.join(words)})"


def static(dataset: Any) -> bool:
    """Whether every component of an element is a dense tensor whose whole shape is known."""
    return all(
        isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined()
        for spec in nest.flatten(dataset.element_spec)
    )
