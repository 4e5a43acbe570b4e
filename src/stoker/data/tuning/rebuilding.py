"""Rebuild a pipeline, stage by stage, from what its Python objects have kept.

The new stages get the same traced functions: the same graphs, captures and seeds. A stage that is not listed below
cannot be rebuilt reliably, so a pipeline with such a stage is left alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import tensorflow as tf

from stoker.data.tuning import stages
from stoker.tf_internals import datasets
from stoker.tf_internals.pipelines import functions_reused, nest, shuffle_like
from stoker.tf_internals.types import Dataset, TensorLike

# Sources without state that give the same every time: they are reused.
SOURCES = frozenset(
    {"TensorSlice", "Tensor", "Range", "TextLine", "TFRecord", "FixedLengthRecord", "SparseTensorSlice"}
)
_BY_ARGUMENTS = frozenset(
    str.split(
        """AssertCardinality Batch Cache Filter FlatMap Interleave Map PaddedBatch ParallelBatch ParallelInterleave
    ParallelMap Prefetch Rebatch Repeat Shard Skip Take TakeWhile Unbatch Unique Window"""
    )
)
# Arguments that only TensorFlow itself or its first version sets.
_LEFT_OUT = frozenset({"input_dataset", "slack_period", "use_legacy_function"})
_DETERMINISTIC = {"default": None, "true": True, "false": False}
# The seeds for a shuffle that has none, so that two pipelines can be compared.
_COMPARED_SEEDS = (87654321, 20170)

Visit = Callable[[Dataset, list[Dataset]], Dataset | None]


class CannotRebuild(Exception):
    """A stage has not kept the arguments it was made with."""


def renew(root: Dataset, visit: Visit | None = None) -> Dataset:
    """Return the same pipeline without the state of earlier iterators: shuffles at their first epoch, caches empty.

    Args:
        root: the last stage.
        visit: makes a stage from the old one and its new inputs; None keeps the stage as it is.
    """
    made: dict[int, Dataset] = {}
    for stage in stages.list_stages(root):
        new_inputs = [made[id(one)] for one in stages.inputs(stage)]
        changed = visit(stage, new_inputs) if visit else None
        made[id(stage)] = rebuild(stage, new_inputs) if changed is None else changed
    return made[id(root)]


def make_comparable(root: Dataset) -> Dataset:
    """Return a renewed pipeline in a fixed order: shuffles without a seed get one, and parallel stages keep their
    order.
    """

    def visit(stage: Dataset, new_inputs: list[Dataset]) -> Dataset | None:
        if stages.kind(stage) == "Shuffle" and seeds(stage) == (0, 0):
            return shuffle_like(stage, new_inputs[0], _COMPARED_SEEDS)
        if stages.kind(stage) in ("ParallelMap", "ParallelBatch", "ParallelInterleave"):
            return rebuild(stage, new_inputs, deterministic=True)
        return None

    options = tf.data.Options()
    options.deterministic = True
    return renew(root, visit).with_options(options)


def replace_stage(root: Dataset, old: Dataset, new: Dataset) -> Dataset:
    """Return the pipeline with one stage, and all stages below it, replaced."""
    made: dict[int, Dataset] = {}
    for stage in stages.list_stages(root):
        before = stages.inputs(stage)
        after = [made[id(one)] for one in before]
        if stage is old:
            made[id(stage)] = new
        elif all(a is b for a, b in zip(before, after, strict=True)):
            made[id(stage)] = stage
        else:
            made[id(stage)] = rebuild(stage, after)
    return made[id(root)]


def rebuild(stage: Dataset, new_inputs: list[Dataset], **changes: object) -> Dataset:
    """Return the stage on other inputs, with some arguments changed.

    Raises:
        CannotRebuild: the stage has not kept its arguments.
    """
    kind = stages.kind(stage)
    if kind in SOURCES or _is_counter(stage):
        _check_source(stage)
        return stage
    if kind == "Restructured":
        return type(stage)(new_inputs[0], stage.element_spec)
    if kind == "Shuffle":
        return shuffle_like(stage, new_inputs[0])
    if kind == "Options":
        return new_inputs[0].with_options(stage.options())
    if kind == "Zip":
        return type(stage)(nest.pack_sequence_as(datasets.argument(stage, "datasets"), new_inputs))
    if kind == "Concatenate":
        return type(stage)(*new_inputs)
    if kind not in _BY_ARGUMENTS:
        raise CannotRebuild(f"{stages.name(stage)} does not keep its arguments")
    with functions_reused():
        return type(stage)(new_inputs[0], **(arguments_of(stage) | changes))


def arguments_of(stage: Dataset) -> dict[str, TensorLike]:
    """Return the arguments with which a stage was made, without its input."""
    found: dict[str, TensorLike] = {}
    for argument in list(inspect.signature(type(stage).__init__).parameters)[1:]:
        if argument in _LEFT_OUT:
            continue
        if argument == "deterministic":
            found[argument] = _DETERMINISTIC[_deterministic(stage)]
        elif argument == "padding_values":
            # Python numbers would have another type.
            found[argument] = datasets.argument(stage, argument)
        elif datasets.has_argument(stage, argument):
            found[argument] = stages.constant(datasets.argument(stage, argument))
        else:
            raise CannotRebuild(f"{stages.name(stage)} does not keep its {argument}")
    return found


def _check_source(stage: Dataset) -> None:
    """Check a reader, which keeps the pipeline that gives it file names, if there is one: it must have no state."""
    names = datasets.argument(stage, "filenames", None)
    behind = stages.inputs(stage) + ([names] if isinstance(names, tf.data.Dataset) else [])
    for one in behind:
        if any(stages.kind(source) not in SOURCES for source in stages.list_stages(one)):
            raise CannotRebuild(f"{stages.name(stage)} does not keep the pipeline of its file names")


def _is_counter(stage: Dataset) -> bool:
    """Return whether this is the source of numbers that `enumerate` zips with its input."""
    if stages.kind(stage) != "Variant" or stage.element_spec != tf.TensorSpec([], tf.int64):
        return False
    # Such a source counts without end. This is checked first, as the graph of any other source might be large.
    if int(stage.cardinality()) != tf.data.INFINITE_CARDINALITY:
        return False
    operations = {node.op for node in datasets.graph_of(stage).node}
    return operations <= {"Const", "RangeDataset", "RewriteDataset", "_Retval"}


def _deterministic(stage: Dataset) -> str:
    if datasets.has_argument(stage, "deterministic"):
        return str(datasets.argument(stage, "deterministic"))
    # Only the graph of a parallel interleave keeps this.
    graph = datasets.graph_of(stage)
    (last,) = (node for node in graph.node if node.op == "_Retval")
    by_name = {node.name: node for node in graph.node}
    return str(by_name[last.input[0].split(":")[0]].attr["deterministic"].s.decode())


def seeds(shuffle: Dataset) -> tuple[int, int]:
    """Return the two seeds of a shuffle; (0, 0) if it has none."""
    return int(datasets.argument(shuffle, "seed")), int(datasets.argument(shuffle, "seed2"))
