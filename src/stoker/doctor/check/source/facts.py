"""The facts that the analysis observed: reads, feeds, tapes, compiled calls, pipelines, library calls.

A fact is neutral. The rules decide whether it is a finding.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from stoker.doctor.check.source.module import FunctionNode, SourceModule
from stoker.doctor.check.source.values import UNKNOWN, Compiled, Dataset, Value


@dataclass(frozen=True, slots=True, eq=False)
class At:
    """A place in the program, and how the code there runs."""

    module: SourceModule
    node: ast.AST
    # Whether it runs at every step of a training, evaluation or inference loop.
    hot: bool
    # Whether it runs repeatedly in some loop, if only once an epoch.
    repeated: bool
    # Whether it runs inside a compiled graph.
    graph: bool
    function: FunctionNode | ast.Lambda | None
    # The function without known callers that runs here, if how it is called is only a guess.
    presumed: FunctionNode | None
    # The innermost loop around this place in the same function, if any.
    loop: ast.AST | None
    # Whether it runs for each element of a pipeline.
    mapped: bool = False

    @property
    def line(self) -> int:
        """The line of the node."""
        return int(getattr(self.node, "lineno", 1))


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """Anything observed at a place."""

    at: At


@dataclass(frozen=True, slots=True, eq=False)
class TensorRead(Fact):
    """Python needs a tensor's value."""

    how: str


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFeed(Fact):
    """An ndarray becomes a tensor: by conversion, or by being passed to something that runs on tensors."""

    how: str
    argument: ast.expr | None = None
    # Whether the argument is known to be an ndarray; if not, it is some other data on the host.
    array: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class TapeStep(Fact):
    """A gradient tape whose gradients are applied; the node is its `with` item."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionMade(Fact):
    """A tf.function is created."""

    # Whether the loop around it also builds the model or optimizer that the function works on.
    rebuilt: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCall(Fact):
    """A tf.function is called from Python."""

    compiled: Compiled
    function: Value
    arguments: tuple[tuple[ast.expr, Value], ...]


@dataclass(frozen=True, slots=True, eq=False)
class SideEffect(Fact):
    """A Python side effect inside a graph. It happens only while the graph is traced."""

    how: str
    compiled: FunctionNode | ast.Lambda | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Consumed(Fact):
    """A pipeline is iterated, or passed to something that iterates it."""

    dataset: Dataset
    how: str


@dataclass(frozen=True, slots=True, eq=False)
class Extended(Fact):
    """A pipeline got one more stage."""

    dataset: Dataset
    parent: Dataset | None


@dataclass(frozen=True, slots=True, eq=False)
class Call(Fact):
    """A call of a library function, or of a method of a library object."""

    name: str
    call: ast.Call
    receiver: Value = UNKNOWN
    arguments: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    # Whether the innermost loop around it calls `fit`.
    loop_fits: bool = False

    def argument(self, position: int, keyword: str) -> Value | None:
        """Return the value passed at a position or by a keyword."""
        if keyword in self.keywords:
            return self.keywords[keyword]
        return self.arguments[position] if position < len(self.arguments) else None


@dataclass(frozen=True)
class Analysis:
    """The facts observed in one file, and in the files into which its calls were followed."""

    module: SourceModule
    facts: list[Fact]
    # Functions of other files that were followed: (path, line of the definition).
    followed: frozenset[tuple[str, int]]
    # Every path that the result depends on, for a cache of results.
    consulted: frozenset[str]
    # Callback methods that Keras calls at every batch.
    batch_methods: frozenset[ast.AST] = frozenset()
