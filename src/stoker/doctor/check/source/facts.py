"""What the analysis observed, for the rules to judge: reads, feeds, tapes, compiled calls, pipelines, calls.

A fact is neutral. Whether it is a finding is a rule's business.
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
    # Runs at every step of a training, evaluation or inference loop.
    hot: bool
    # Runs again and again in some loop, if only once an epoch.
    repeated: bool
    # Runs inside a compiled graph.
    graph: bool
    function: FunctionNode | ast.Lambda | None
    # The function nobody was seen to call, on whose own look the claim rests.
    presumed: FunctionNode | None
    # The innermost loop around this place in the same function, if there is one.
    loop: ast.AST | None
    # Runs for the elements of a pipeline.
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
    """A tensor's value is needed in Python."""

    how: str


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFeed(Fact):
    """An ndarray becomes a tensor: by conversion, or by being passed to something that runs on tensors."""

    how: str
    argument: ast.expr | None = None
    # Whether the argument is known to be an ndarray; else it is host data of some kind.
    array: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class TapeStep(Fact):
    """A gradient tape whose gradients are applied; the node is its `with` item."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionMade(Fact):
    """A tf.function comes into being."""

    # The loop around it also builds the model or optimizer that the function works on.
    rebuilt: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCall(Fact):
    """A tf.function is called from Python."""

    compiled: Compiled
    function: Value
    arguments: tuple[tuple[ast.expr, Value], ...]


@dataclass(frozen=True, slots=True, eq=False)
class SideEffect(Fact):
    """Python does something inside a graph that will happen only while it is traced."""

    how: str
    compiled: FunctionNode | ast.Lambda | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Consumed(Fact):
    """A pipeline is iterated, or handed to something that iterates it."""

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
    # The innermost loop around it calls `fit`.
    loop_fits: bool = False

    def argument(self, position: int, keyword: str) -> Value | None:
        """The value passed at a position or by a keyword."""
        if keyword in self.keywords:
            return self.keywords[keyword]
        return self.arguments[position] if position < len(self.arguments) else None


@dataclass(frozen=True)
class Analysis:
    """What was observed in one file, and in the files it was followed into."""

    module: SourceModule
    facts: list[Fact]
    # Functions of other files that were followed: (path, line of the definition).
    followed: frozenset[tuple[str, int]]
    # Every path that decided something, for those who cache the result.
    consulted: frozenset[str]
    # Methods that Keras calls at every batch.
    batch_methods: frozenset[ast.AST] = frozenset()
