"""The side effects of a pipeline's functions: drawing random numbers, running Python, reading or changing state."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import tensorflow as tf

from stoker.tf_internals import graphs
from stoker.tf_internals.types import Graph, ProtoMessage, StageFunction, Tensor, Variable

_RANDOM = re.compile(
    r"(Random(?!IndexShuffle)|TruncatedNormal|ParameterizedTruncated|Multinomial|SampleDistorted|Shuffle(AndRepeat)?Dataset)"
)
_VARIABLE_READS = frozenset(
    {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp"}
)
_VARIABLE_CHANGES = re.compile(
    r"(Assign.*VariableOp|ResourceScatter|Stateful(Uniform|Standard|Truncated|Random)|Rng)"
)
_LOOKUPS = frozenset({"LookupTableFindV2", "LookupTableSizeV2"})
# TensorFlow counts these as stateful, although nothing outlives the call.
_HARMLESS = frozenset(
    str.split(
        """Assert Placeholder StatefulPartitionedCall If While Case HashTableV2 AnonymousHashTable InitializeTableV2
    InitializeTableFromTextFileV2 DummySeedGenerator DummyMemoryCache DummyIterationCounter"""
    )
)


@dataclass
class Effects:
    """The effects of one traced function, and of all functions that it calls.

    Attributes:
        python: whether it runs Python code.
        random: whether it draws random numbers that its arguments do not determine.
        unseeded: whether it draws random numbers that no seed determines, either.
        variables: whether it reads or changes variables.
        changes_variables: whether it changes variables.
        mutable_tables: whether it reads a lookup table that may change.
        lasting: operations with other lasting effects.
    """

    python: bool = False
    random: bool = False
    unseeded: bool = False
    variables: bool = False
    changes_variables: bool = False
    mutable_tables: bool = False
    lasting: list[str] = field(default_factory=list)

    @property
    def why_not_pure(self) -> str | None:
        """The reason why the arguments alone do not determine the result; None if they do."""
        if self.lasting:
            return f"it has effects of its own ({', '.join(sorted(set(self.lasting)))})"
        for holds, why in (
            (self.python, "it runs Python code"),
            (self.random, "it draws random numbers"),
            (self.variables, "it uses variables"),
            (self.mutable_tables, "it reads a table that may change"),
        ):
            if holds:
                return why
        return None


def find_effects(wrapper: StageFunction) -> Effects:
    """Return the effects of a stage's function."""
    found = Effects()
    lookups = False
    for node in nodes(wrapper.function.graph):
        if node.op in graphs.PYTHON_OPS:
            found.python = True
        elif _RANDOM.match(node.op) and not node.op.startswith("Stateless"):
            found.random = True
            found.unseeded |= not _is_seeded(node)
        elif node.op in _VARIABLE_READS:
            found.variables = True
        elif _VARIABLE_CHANGES.match(node.op):
            found.variables = found.changes_variables = True
        elif node.op in _LOOKUPS:
            lookups = True
        elif _is_stateful(node.op) and node.op not in _HARMLESS and not re.search(r"Dataset(V\d)?$", node.op):
            found.lasting.append(node.op)
    captured = wrapper.function.captured_inputs
    if lookups:
        found.mutable_tables = not all(_is_immutable(one) for one in captured if one.dtype == tf.resource)
    if any(one.dtype == tf.variant for one in captured):
        found.lasting.append("a dataset from outside")
    return found


def variables(wrapper: StageFunction) -> list[Variable]:
    """List the variables that a function captures."""
    return list(wrapper.function.graph.variables)


def nodes(graph: Graph) -> Iterator[ProtoMessage]:
    """Yield every node of a graph and of the functions in its library."""
    definition = graph.as_graph_def()
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def _is_stateful(op: str) -> bool:
    definition = graphs.definition(op)
    return definition is None or bool(definition.is_stateful)


def _is_seeded(node: ProtoMessage) -> bool:
    return bool(node.attr["seed"].i or node.attr["seed2"].i)


def _is_immutable(handle: Tensor) -> bool:
    """Return whether a resource is a table that is filled only once, which only its Python object knows."""
    for holder in gc.get_referrers(handle):
        owners = gc.get_referrers(holder) if isinstance(holder, dict) else [holder]
        if any(graphs.is_filled_once(owner) for owner in owners):
            return True
    return False
