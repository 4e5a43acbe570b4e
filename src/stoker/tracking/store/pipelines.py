"""What a `tf.data` pipeline is made of: the tensors and files it begins with, its steps, and what its functions hold.

A pipeline has no content of its own until it is run, but the same sources, taken through the same steps, are the same
data. What it draws from elsewhere (a generator, Python called from the graph, a table, an iterator) cannot be seen from
outside; such a pipeline is known by its form only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

# Nothing that these compute, or where they read, is in the graph.
_UNSEEN = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless", "GeneratorDataset"})
# Sources that are known by their settings.
_NUMBERS = ("_RangeDataset", "EpochKeys")
_OPAQUE = ("resource", "variant")


class UnseenError(Exception):
    """Something in the pipeline cannot be known."""


def parts(dataset: Any) -> Iterator[tuple[str, Any]]:
    """What it is made of, each with a name: arrays, lists of files (`Files`), and the text of what is done with them.

    Raises:
        UnseenError: it cannot be told from its sources.
    """
    if not hasattr(dataset, "_inputs"):
        raise UnseenError(_kind(dataset))  # one that a strategy has distributed
    yield f"{_kind(dataset)} {dataset.element_spec}", None
    yield from _settings(dataset)
    inputs, tensors = dataset._inputs(), list(getattr(dataset, "_tensors", ()))
    names = getattr(dataset, "_filenames", None)  # of a reader: a dataset, or a tensor
    if names is not None and not inputs:
        inputs, tensors = ([names], []) if hasattr(names, "element_spec") else ([], [names])
    if not inputs and not tensors and _kind(dataset) not in _NUMBERS:
        raise UnseenError(_kind(dataset))
    for number, tensor in enumerate(tensors):
        yield f"tensor {number}", _content(tensor)
    for function in dataset._functions():
        yield from _function(function.function)
    for number, inner in enumerate(inputs):
        yield f"input {number}", None
        yield from parts(inner)


def _kind(dataset: Any) -> str:
    return type(dataset).__name__


def _settings(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Sizes, counts and seeds: numbers, and small tensors that a step keeps."""
    for name, value in sorted(vars(dataset).items()):
        if isinstance(value, int):
            yield f"{name} {value!r}", None
        elif hasattr(value, "numpy") and getattr(value, "shape", None) == () and "variant" not in name:
            if value.dtype.name in _OPAQUE:
                raise UnseenError(name)
            yield f"{name} {value.numpy()!r}", None


def _function(function: Any) -> Iterator[tuple[str, Any]]:
    """A step's function: its operations, and what it captured.

    Names and order are those of whatever was traced before, so operations go without them: which there are, not how
    they are wired. That is the code's, which the run has, too.
    """
    definition = function.graph.as_graph_def()
    bodies = [definition.node, *(one.node_def for one in definition.library.function)]
    for text in sorted(_operations(body) for body in bodies):
        yield text, None
    for number, tensor in enumerate(function.captured_inputs):
        yield f"captured {number}", _content(tensor)


def _operations(body: Any) -> str:
    found = []
    for node in body:
        if node.op in _UNSEEN:
            raise UnseenError(node.op)
        found.append(
            " ".join([node.op, *(f"{key}={_attribute(node.attr[key])}" for key in sorted(node.attr))])
        )
    return "\n".join(sorted(found))


def _attribute(value: Any) -> str:
    """As text; of a function not its name, since its body is told."""
    return "function" if value.HasField("func") or value.list.func else str(value).strip()


def _content(tensor: Any) -> Any:
    told = getattr(tensor, "stoker_content", None)  # by the readers of `stoker.data`
    if told is not None:
        return told
    if tensor.dtype.name in _OPAQUE or "CPU" not in str(tensor.device):
        raise UnseenError(tensor.dtype.name)
    array = tensor.numpy()
    return files_of(array) or array


class Files:
    """Files that a pipeline begins with, in order."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        above = os.path.dirname(os.path.commonpath(paths)) if len(paths) == 1 else os.path.commonpath(paths)
        # The same files elsewhere are the same data; the directory they are in may be their label.
        self.names = [os.path.relpath(one, above) for one in paths]
        self.size = sum(os.path.getsize(one) for one in paths)


def files_of(array: Any) -> Files | None:
    """Strings that all are names of files here."""
    names = [array] if isinstance(array, bytes) else array.ravel().tolist() if array.dtype.hasobject else []
    if not names or not all(isinstance(one, bytes) for one in names):
        return None
    paths = [os.fsdecode(one) for one in names]
    if any("\0" in one for one in paths) or not all(map(os.path.isfile, paths)):
        return None
    return Files([os.path.abspath(one) for one in paths])
