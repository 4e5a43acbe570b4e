"""Python side effects in a tf.function happen only while it is traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import replace_node, tensorflow_name
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis, SideEffect


class SideEffectInTfFunction(Rule):
    """Python side effects inside compiled functions and the functions that they call."""

    slug = "side-effect-in-tf-function"
    code = "STK205"
    account = "trace"
    title = "Python side effects in a tf.function happen only while it is traced"
    remedy = "Use tf.print, tf.Variable or TensorArray, or move the effect out of the function."
    severity = "error"
    what = (
        "Reports `print`, appending to a list from outside, counters kept in attributes or globals, random numbers "
        "and clocks of Python or NumPy inside a tf.function, or in a function it calls."
    )
    why = (
        "The Python code of a tf.function runs only while it is traced. A print appears once, a list gets one "
        "symbolic tensor, a counter counts traces, and a random number is the same in every step."
    )
    fix_safety = (
        "`tf.print` for `print` is unsafe: it prints at every step, to the error stream, and formats "
        "differently."
    )
    known_problems = "A `print` that mentions tracing is assumed to be intended."

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report every side effect that the analysis found in traced code."""
        for fact in analysis.facts:
            if isinstance(fact, SideEffect):
                name = getattr(fact.compiled, "name", "a lambda")
                message = f"{fact.how} only while `{name}` is traced, not at every call"
                yield self.problem(fact.at, message, _use_tf_print(fact))


def _use_tf_print(fact: SideEffect) -> Fix | None:
    module, node = fact.at.module, fact.at.node
    alias = tensorflow_name(module, node)
    if alias is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    plain = node.func.id == "print" and all(keyword.arg == "sep" for keyword in node.keywords)
    if not plain or any(isinstance(part, ast.JoinedStr) for part in ast.walk(node)):
        return None
    return Fix("unsafe", (replace_node(module, node.func, f"{alias}.print"),), f"Use {alias}.print")


STALL = SideEffectInTfFunction()
