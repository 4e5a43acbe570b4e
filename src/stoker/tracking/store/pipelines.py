"""The parts of a `tf.data` pipeline: the tensors and files it starts from, its steps, and what its functions hold.

A pipeline has no content until it runs, but the same sources taken through the same steps give the same data. Other
inputs (a generator, Python called from the graph, a lookup table, an iterator) cannot be seen from outside, so a
pipeline that has one is identified only by its element spec.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from stoker.tf_internals import datasets
from stoker.tf_internals.graphs import PYTHON_OPS
from stoker.tf_internals.types import ConcreteFunction, Dataset, ProtoMessage, Tensor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The content of a part: files, or the value of a tensor.
Content: TypeAlias = "Files | NDArray[np.generic] | bytes"

# Operations whose computations or inputs the graph does not show.
_UNSEEN = PYTHON_OPS | {"GeneratorDataset"}
# Sources that are fully described by their settings.
_NUMBERS = ("_RangeDataset", "EpochKeys")
_OPAQUE = ("resource", "variant")


class UnseenError(Exception):
    """A part of the pipeline cannot be seen from outside."""


def list_parts(dataset: Dataset) -> Iterator[tuple[str, Content | None]]:
    """List the parts of a pipeline: names, each with an array, with `Files`, or with None if the name is enough.

    Raises:
        UnseenError: the pipeline's sources do not determine its content.
    """
    if not datasets.has_argument(dataset, "inputs"):
        raise UnseenError(_kind(dataset))  # a strategy has distributed it
    yield f"{_kind(dataset)} {dataset.element_spec}", None
    yield from _list_settings(dataset)
    inputs, tensors = datasets.inputs(dataset), list(datasets.argument(dataset, "tensors", ()))
    names = datasets.argument(dataset, "filenames", None)  # of a reader; a dataset or a tensor
    if names is not None and not inputs:
        inputs, tensors = ([names], []) if hasattr(names, "element_spec") else ([], [names])
    if not inputs and not tensors and _kind(dataset) not in _NUMBERS:
        raise UnseenError(_kind(dataset))
    for number, tensor in enumerate(tensors):
        yield f"tensor {number}", _read_content(tensor)
    for function in datasets.functions(dataset):
        yield from _list_operations(function.function)
    for number, inner in enumerate(inputs):
        yield f"input {number}", None
        yield from list_parts(inner)


def _kind(dataset: Dataset) -> str:
    return type(dataset).__name__


def _list_settings(dataset: Dataset) -> Iterator[tuple[str, Content | None]]:
    """List the sizes, counts and seeds of a step: the numbers and scalar tensors that it keeps."""
    for name, value in sorted(vars(dataset).items()):
        if isinstance(value, int):
            yield f"{name} {value!r}", None
        elif hasattr(value, "numpy") and getattr(value, "shape", None) == () and "variant" not in name:
            if value.dtype.name in _OPAQUE:
                raise UnseenError(name)
            yield f"{name} {value.numpy()!r}", None


def _list_operations(function: ConcreteFunction) -> Iterator[tuple[str, Content | None]]:
    """List a step's function: its operations, and what it captured.

    Names and order depend on what was traced before, so they are left out: the list says which operations there are,
    not how they are connected. The run also keeps the code, which shows that.
    """
    definition = function.graph.as_graph_def()
    bodies = [definition.node, *(one.node_def for one in definition.library.function)]
    for text in sorted(_describe_body(body) for body in bodies):
        yield text, None
    for number, tensor in enumerate(function.captured_inputs):
        yield f"captured {number}", _read_content(tensor)


def _describe_body(body: Iterable[ProtoMessage]) -> str:
    found = []
    for node in body:
        if node.op in _UNSEEN:
            raise UnseenError(node.op)
        found.append(
            " ".join(
                [node.op, *(f"{key}={_describe_attribute(node.attr[key])}" for key in sorted(node.attr))]
            )
        )
    return "\n".join(sorted(found))


def _describe_attribute(value: ProtoMessage) -> str:
    """Describe an attribute as text; a function without its name, because its body is listed."""
    return "function" if value.HasField("func") or value.list.func else str(value).strip()


def _read_content(tensor: Tensor) -> Content:
    known: Content | None = getattr(tensor, "stoker_content", None)  # set by the readers of `stoker.data`
    if known is not None:
        return known
    if tensor.dtype.name in _OPAQUE or "CPU" not in str(tensor.device):
        raise UnseenError(tensor.dtype.name)
    array: NDArray[np.generic] | bytes = tensor.numpy()
    return find_files(array) or array


class Files:
    """Files that a pipeline starts from, in order."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        above = os.path.dirname(os.path.commonpath(paths)) if len(paths) == 1 else os.path.commonpath(paths)
        # The same files in another place are the same data, but a file's directory may be its label.
        self.names = [os.path.relpath(one, above) for one in paths]
        self.size = sum(os.path.getsize(one) for one in paths)


def find_files(array: NDArray[np.generic] | bytes) -> Files | None:
    """Return the files that an array of strings names, if every string names a file on this machine."""
    names = [array] if isinstance(array, bytes) else array.ravel().tolist() if array.dtype.hasobject else []
    if not names or not all(isinstance(one, bytes) for one in names):
        return None
    paths = [os.fsdecode(one) for one in names]
    if any("\0" in one for one in paths) or not all(map(os.path.isfile, paths)):
        return None
    return Files([os.path.abspath(one) for one in paths])
