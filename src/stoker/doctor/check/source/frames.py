"""What runs at the moment: the function with its names, and the loops around it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from stoker.doctor.check.source.module import ClassInfo, FunctionNode, SourceModule
from stoker.doctor.check.source.values import Scope, Value


@dataclass(eq=False)
class LoopState:
    """What one loop was seen to do in its quiet pass."""

    node: ast.AST
    # Runs inside a gradient tape, a model's forward pass or a graph: a part of the step, not a loop of steps.
    within_step: bool = False
    # Calls a model, a compiled step, an optimizer.
    strong: bool = False
    # Does so in the open, not only in a branch that looks rare.
    often: bool = False
    # Computes with tensors.
    weak: bool = False
    # Contains a loop of steps, here or in a function it calls.
    inner_steps: bool = False
    # Applies gradients.
    trains: bool = False
    # Builds a model or an optimizer.
    builds: bool = False
    builds_model: bool = False
    fits: bool = False


@dataclass(eq=False)
class CallFrame:
    """One function's run: its names, and how its code runs at the moment."""

    module: SourceModule
    scope: Scope
    function: FunctionNode | ast.Lambda | None = None
    hot: bool = False
    repeated: bool = False
    graph: bool = False
    presumed: FunctionNode | None = None
    # The class whose method this is.
    info: ClassInfo | None = None
    # Traced as part of a tf.function, so that Python effects happen only once.
    traced: FunctionNode | ast.Lambda | None = None
    # Runs for the elements of a pipeline.
    mapped: bool = False
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    loops: list[ast.AST] = field(default_factory=list)
