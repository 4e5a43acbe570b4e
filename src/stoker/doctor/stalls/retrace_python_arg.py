"""A changing Python argument retraces the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.edits import replace_node, tensorflow_name
from stoker.doctor.check.rule import Edit, Fix, Problem, Rule, describe
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
        """Report each call with Python arguments that vary, and name them all."""
        for fact in analysis.facts:
            if not isinstance(fact, CompiledCall) or not fact.at.repeated or fact.compiled.signature:
                continue
            varying = [(node, value) for node, value in fact.arguments if varies(value)]
            if varying:
                message = (
                    f"{_name_all([node for node, _ in varying])}: each new value traces the function again"
                )
                yield self.problem(fact.at, message, _wrap_all(fact.at.module, varying))

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


def _name_all(nodes: list[ast.expr]) -> str:
    *others, last = dict.fromkeys(describe(node) for node in nodes)
    if not others:
        return f"{last} is a Python value that changes"
    return f"{', '.join(others)} and {last} are Python values that change"


def _wrap_all(module: SourceModule, arguments: list[tuple[ast.expr, Value]]) -> Fix | None:
    """Return the fix if it works for all arguments: one that is left would trace the function as often."""
    edits = [_wrap(module, node, value) for node, value in arguments]
    wrapped = tuple(edit for edit in edits if edit is not None)
    if len(wrapped) < len(edits):
        return None
    return Fix("unsafe", wrapped, "Pass it as a tensor" if len(wrapped) == 1 else "Pass them as tensors")


def _wrap(module: SourceModule, node: ast.expr, value: Value) -> Edit | None:
    alias = tensorflow_name(module, node)
    if alias is None or not isinstance(value, Py) or value.type == "str":
        return None
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    return replace_node(module, node, f"{alias}.constant({module.segment(node)})")


STALL = RetracePythonArg()
