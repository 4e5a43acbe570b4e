"""The state of what is being interpreted: a function with its names, and the loops around."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from stoker.doctor.check.source.module import ClassInfo, FunctionNode, SourceModule
from stoker.doctor.check.source.values import Scope, Value


@dataclass(eq=False)
class LoopState:
    """The behaviour of a loop, as seen so far."""

    node: ast.AST
    # Whether it runs inside a gradient tape, a forward pass or a graph: a part of a step, not a loop of steps.
    within_step: bool = False
    # Whether it calls a model, a compiled step or an optimizer.
    strong: bool = False
    # Whether it does so outside branches that look rare.
    often: bool = False
    # Whether it computes with tensors.
    weak: bool = False
    # Whether it contains a loop of steps, directly or in a function it calls.
    inner_steps: bool = False
    # Whether it applies gradients.
    trains: bool = False
    # Whether it builds a model or an optimizer.
    builds: bool = False
    builds_model: bool = False
    fits: bool = False


@dataclass(eq=False)
class CallFrame:
    """One run of a function: its names, and how its code runs at the moment."""

    module: SourceModule
    scope: Scope
    function: FunctionNode | ast.Lambda | None = None
    hot: bool = False
    repeated: bool = False
    graph: bool = False
    presumed: FunctionNode | None = None
    # The class that the method belongs to.
    info: ClassInfo | None = None
    # The tf.function that traces this code, so that Python side effects happen only once.
    traced: FunctionNode | ast.Lambda | None = None
    # Whether it runs for each element of a pipeline.
    mapped: bool = False
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    loops: list[ast.AST] = field(default_factory=list)
