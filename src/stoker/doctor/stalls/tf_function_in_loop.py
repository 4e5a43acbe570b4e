"""A tf.function is created inside the loop and traced every time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Fact, FunctionMade
from stoker.doctor.stalls.shared.draft import Draft
from stoker.doctor.stalls.shared.retraces import TracedOnce, find_retraced_functions

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements


class TfFunctionInLoop(Rule):
    """tf.functions that are created again and again."""

    slug = "tf-function-in-loop"
    code = "STK202"
    account = "trace"
    title = "A tf.function is created inside the loop and traced every time"
    remedy = "Create the tf.function once, outside the loop."
    severity = "error"
    what = (
        "Reports `@tf.function`, `tf.function(f)` and `keras.backend.function(...)` that run inside a loop, or in "
        "a function that a loop calls."
    )
    why = (
        "Each tf.function object has its own cache of graphs. A new object knows none, so it traces the Python "
        "code again at its first call: tens of milliseconds to seconds, in every iteration."
    )
    known_problems = (
        "A loop over models or folds that builds its own model needs a function for each; such loops "
        "are recognised by the model or optimizer they make. Functions kept in a cache of the program's own may be "
        "reported."
    )
    repair = TracedOnce(makes_function=True)

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report every tf.function made in a loop whose model lives longer than an iteration."""
        for fact in analysis.facts:
            made_anew = isinstance(fact, FunctionMade) and fact.at.repeated and not fact.rebuilt
            if made_anew and not fact.at.graph and not _is_kept(fact):
                yield self.problem(fact.at, "a new tf.function is made and traced in each iteration")

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report definitions of many tf.function objects, at the line of the definition, which is inside the loop."""
        for found in find_retraced_functions(m):
            function = found.function
            if found.is_made_anew:
                detail = {"function": function.name, "objects": function.objects, "traces": function.traces}
                spent = function.ns + found.lost_ns - function.repeated_ns
                where = function.definition or found.site
                yield Draft(where, function.traces, spent, found.lost_ns, detail=detail)


def _is_kept(fact: Fact) -> bool:
    """Return whether the program caches the function: puts it into a dictionary, or makes it only if there is none."""
    module, node = fact.at.module, fact.at.node
    statement = module.find_enclosing(node, ast.stmt)
    if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Subscript) for t in statement.targets):
        return True
    guard = module.find_enclosing(node, ast.If, ast.FunctionDef, ast.For, ast.While)
    test = guard.test if isinstance(guard, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotIn, ast.Is))


STALL = TfFunctionInLoop()
