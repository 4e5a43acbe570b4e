"""The step runs op by op instead of as a graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.edits import indentation, insert_line, tensorflow_name
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis, At, Call, TapeStep
from stoker.doctor.stalls.shared.as_graph import AsGraph
from stoker.doctor.stalls.shared.eager_switch import is_host_call, switches_to_eager, turn_graphs_on
from stoker.doctor.stalls.shared.eager_work import eager_steps

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.stalls.shared.draft import Draft


class EagerTrainStep(Rule):
    """Gradient tapes that are recorded in Python at every step."""

    slug = "eager-train-step"
    code = "STK201"
    account = "dispatch"
    title = "The step runs op by op instead of as a graph"
    remedy = "Decorate the step with @tf.function (or drop run_eagerly=True)."
    is_part_of_call = True
    severity = "error"
    what = (
        "Reports a `tf.GradientTape` whose gradients are applied in a loop while nothing compiles the step: "
        "neither a `tf.function` on it or on a caller, nor `strategy.run`, nor a Keras base class. Also reports "
        "`run_eagerly=True` and `tf.config.run_functions_eagerly(True)` left in a program."
    )
    why = (
        "An eager step pays Python's price for each operation, forward and backward: for small and medium models "
        "it is 5 to 20 times slower than the same step compiled, and the device waits for Python in between."
    )
    fix_safety = (
        "Decorating the function with `@tf.function` is unsafe: Python code in it then runs only while it "
        "is traced. It is offered only where the function prints nothing, reads no tensor, calls no NumPy and changes "
        "no Python state. Taking out `run_eagerly=True`, `run_eagerly = True` on a model, or "
        "`tf.config.run_functions_eagerly(True)` is unsafe for the same reason. It is offered only where the file "
        "shows nothing that needs Python in what would then be compiled: a `train_step` or `call` of its own, a "
        "loss or metric named in `compile`, a function under `@tf.function`."
    )
    known_problems = (
        "A function that no checked file calls is judged by its body alone; a caller elsewhere "
        "may compile it."
    )
    repair = AsGraph(
        assumes="in a graph the same kernels run: at worst one after the other, at best as many at a time as there "
        "are processors",
        beside=(0.0, 0.7),
        spread=(0.4, 0.4),
        owns_tapes=True,
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report tapes at each step outside a graph, and switches that turn graphs off."""
        for fact in analysis.facts:
            if isinstance(fact, TapeStep) and fact.at.repeated and not fact.at.graph:
                message = "the train step runs op by op: nothing compiles the function around this tape"
                yield self.problem(fact.at, message, add_decorator(fact.at))
            elif isinstance(fact, Call) and switches_to_eager(fact):
                message = "graphs are switched off: every step runs op by op"
                yield self.problem(fact.at, message, turn_graphs_on(fact))

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report functions with a tape whose step runs op by op."""
        return eager_steps(m)


def add_decorator(at: At) -> Fix | None:
    """Return a fix that adds `@tf.function` to the function, if nothing in it needs Python at every step."""
    function, alias = at.function, tensorflow_name(at.module, at.node)
    if not isinstance(function, ast.FunctionDef) or alias is None or function.decorator_list:
        return None
    if not all(_can_compile(node) for statement in function.body for node in ast.walk(statement)):
        return None
    inner = at.module.find_enclosing(function, ast.FunctionDef, ast.AsyncFunctionDef)
    if inner is not None:
        # A nested function is made, and would be traced, at each call of the outer one.
        return None
    line = f"{indentation(at.module, function.lineno)}@{alias}.function"
    edits = (insert_line(function.lineno, line),)
    return Fix("unsafe", edits, f"Compile `{function.name}` with @{alias}.function")


def _can_compile(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return not is_host_call(node)
    if isinstance(node, (ast.AugAssign, ast.Assign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return not any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)
    return not isinstance(
        node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.JoinedStr)
    )


STALL = EagerTrainStep()
