"""A changing Python argument retraces the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.edits import replace_node, tensorflow_name
from stoker.doctor.check.rule import Fix, Problem, Rule, describe
from stoker.doctor.check.source.facts import Analysis, CompiledCall
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.values import Py, Seq, Value
from stoker.doctor.stalls.shared.retraces import TracedOnce, find_retraced_by_arguments

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.stalls.shared.draft import Draft

_RETRACING = frozenset({"int", "float", "str"})


class RetracePythonArg(Rule):
    """Python numbers and strings that differ from call to call of a tf.function."""

    slug = "retrace-python-arg"
    code = "STK203"
    account = "trace"
    title = "A changing Python argument retraces the function"
    remedy = "Pass it as a tensor (tf.constant), or give the function an input_signature."
    severity = "error"
    what = (
        "Reports calls of a tf.function, in a loop, with a Python number or string that changes from call to "
        "call: a loop counter, a decaying rate, `len(batch)`, `float(x)`. Constants, booleans, tensors and functions "
        "with an `input_signature` are fine."
    )
    why = (
        "A Python value is part of the graph's key. Each new value means a new trace, which costs far more than "
        "the step, and the graphs pile up in memory."
    )
    fix_safety = (
        "Wrapping the argument in `tf.constant` is unsafe: inside the function it becomes a tensor, which "
        "matters where Python code branches on it."
    )
    known_problems = "A value that takes only a few different values is reported as well."
    repair = TracedOnce()

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report each call's first Python argument that varies."""
        for fact in analysis.facts:
            if not isinstance(fact, CompiledCall) or not fact.at.repeated or fact.compiled.signature:
                continue
            for node, value in fact.arguments:
                if varies(value):
                    message = (
                        f"{describe(node)} is a Python value that changes: "
                        "each new value traces the function again"
                    )
                    yield self.problem(fact.at, message, _wrap(fact.at.module, node, value))
                    break

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report functions traced again because Python values changed."""
        return (found.draft() for found in find_retraced_by_arguments(m) if found.is_by_python_values)


def varies(value: Value) -> bool:
    """Return whether a value is part of the graph's key and differs from call to call."""
    if isinstance(value, Py):
        return value.varies and value.type in _RETRACING
    if isinstance(value, Seq) and value.items is not None:
        return any(varies(item) for item in value.items)
    return False


def _wrap(module: SourceModule, node: ast.expr, value: Value) -> Fix | None:
    alias = tensorflow_name(module, node)
    if alias is None or not isinstance(value, Py) or value.type == "str":
        return None
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    edit = replace_node(module, node, f"{alias}.constant({module.segment(node)})")
    return Fix("unsafe", (edit,), "Pass it as a tensor")


STALL = RetracePythonArg()
