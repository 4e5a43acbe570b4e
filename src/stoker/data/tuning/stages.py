"""The stages of a pipeline, read from its Python objects: their names, arguments and functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from stoker.data.tuning import generators
from stoker.tf_internals import datasets
from stoker.tf_internals.datasets import functions as functions
from stoker.tf_internals.datasets import inputs as inputs
from stoker.tf_internals.pipelines import nest
from stoker.tf_internals.types import Dataset, TensorLike

_OWN_NAMES = {
    "TensorSlice": "from_tensor_slices",
    "Tensor": "from_tensors",
    "TFRecord": "TFRecordDataset",
    "TextLine": "TextLineDataset",
    "FixedLengthRecord": "FixedLengthRecordDataset",
}
_SHOWN_ARGUMENTS = (
    "batch_size",
    "buffer_size",
    "count",
    "cycle_length",
    "block_length",
    "num_parallel_calls",
)


def kind(dataset: Dataset) -> str:
    """Return the bare class name of a stage: `ParallelMap`, `Batch`, `TensorSlice`."""
    return re.sub(r"Dataset(V\d)?$", "", type(dataset).__name__.lstrip("_"))


def list_stages(dataset: Dataset) -> Iterator[Dataset]:
    """Yield a stage and all stages that it reads, each once, sources first."""
    seen: set[int] = set()

    def visit(one: Dataset) -> Iterator[Dataset]:
        if id(one) in seen:
            return
        seen.add(id(one))
        for source in inputs(one):
            yield from visit(source)
        yield one

    yield from visit(dataset)


def is_generator(dataset: Dataset) -> bool:
    """Return whether this stage is the `flat_map` that `from_generator` makes."""
    if kind(dataset) != "FlatMap":
        return False
    function = datasets.python_function(datasets.map_function(dataset))
    return "from_generator" in getattr(function, "__qualname__", "")


def name(dataset: Dataset) -> str:
    """Return the method that made the stage: `map`, `batch`, `from_generator`."""
    if is_generator(dataset):
        return "from_generator"
    plain = kind(dataset)
    if plain in _OWN_NAMES:
        return _OWN_NAMES[plain]
    plain = plain.removeprefix("Parallel")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", plain).lower()


def arguments(dataset: Dataset) -> dict[str, int | str]:
    """Return the arguments worth showing; -1 is shown as AUTOTUNE."""
    found: dict[str, int | str] = {}
    for argument in _SHOWN_ARGUMENTS:
        value = constant(datasets.argument(dataset, argument, None))
        if value is None:
            continue
        tuned = argument in ("num_parallel_calls", "buffer_size", "cycle_length")
        found[argument] = "AUTOTUNE" if tuned and value == tf.data.AUTOTUNE else value
    return found


def constant(value: TensorLike) -> TensorLike:
    """Return a Python number if TensorFlow keeps one as an eager scalar; return anything else unchanged."""
    if not isinstance(value, tf.Tensor) or not hasattr(value, "numpy") or value.shape.rank != 0:
        return value
    return value.numpy().item() if value.dtype.is_integer or value.dtype.is_bool else value


def function_site(dataset: Dataset) -> str | None:
    """Name the user's function of a stage, as in `scale at train.py:12`; None if it has none."""
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


def describe(dataset: Dataset) -> str:
    """Describe a stage in a few words: `map(scale at train.py:12)`, `batch(32)`."""
    given = arguments(dataset)
    site = function_site(dataset)
    words = [site] if site else []
    words += [
        str(value) if key in ("batch_size", "buffer_size", "count") else f"{key}={value}"
        for key, value in given.items()
    ]
    return f"{name(dataset)}({', '.join(words)})"


def is_dense(dataset: Dataset) -> bool:
    """Return whether every component of an element is a dense tensor."""
    return all(isinstance(spec, tf.TensorSpec) for spec in nest.flatten(dataset.element_spec))


def is_static(dataset: Dataset) -> bool:
    """Return whether every component of an element is a dense tensor of a known shape."""
    specs = nest.flatten(dataset.element_spec)
    return is_dense(dataset) and all(spec.shape.is_fully_defined() for spec in specs)
