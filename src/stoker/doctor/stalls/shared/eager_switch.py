"""Switches that turn graphs off for debugging and were left on: find and remove them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import remove_argument, remove_statement
from stoker.doctor.check.rule import Edit, Fix
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.names import dotted_name, last_name
from stoker.doctor.check.source.values import Py

_SWITCHES = frozenset({"tf.config.run_functions_eagerly", "tf.config.experimental_run_functions_eagerly"})
# The analysis's name for `model.run_eagerly = True`.
_ASSIGNED = "run_eagerly=True"
# Calls that work, or mean what they say, only outside a graph.
_EAGER_ONLY = frozenset(
    {"numpy", "item", "tolist", "print", "append", "extend", "write", "assign_moving", "train_on_batch"}
)
_HOST_MODULES = ("np.", "numpy.", "random.", "time.", "math.", "plt.", "wandb.", "logging.", "logger.", "os.")
_CASTS = frozenset({"float", "int", "bool", "str", "open", "round", "breakpoint", "input"})
# Methods that Keras calls inside the steps that it compiles.
_IN_STEPS = frozenset(
    {
        *("call", "train_step", "test_step", "predict_step", "compute_loss", "compute_metrics"),
        *("update_state", "update_step", "__call__"),
    }
)


def is_host_call(node: ast.Call) -> bool:
    """Return whether a call works, or means what it says, only outside a graph."""
    if last_name(node.func) in _EAGER_ONLY or dotted_name(node.func).startswith(_HOST_MODULES):
        return True
    return isinstance(node.func, ast.Name) and node.func.id in _CASTS


def switches_to_eager(fact: Call) -> bool:
    """Return whether a call turns graphs off."""
    if fact.name in _SWITCHES:
        value = fact.argument(0, "run_eagerly")
        return not (isinstance(value, Py) and value.const is False)
    if fact.name == _ASSIGNED:
        return True
    value = fact.keywords.get("run_eagerly")
    return fact.name == "model.compile" and isinstance(value, Py) and value.const is True


def turn_graphs_on(fact: Call) -> Fix | None:
    """Return a fix that removes the switch, if it is a literal and no code that then runs in a graph needs Python."""
    module = fact.at.module
    edit = _edit(module, fact)
    if edit is None or any(_needs_python(function) for function in _list_compiled(module, fact)):
        return None
    return Fix("unsafe", (edit,), "Run the steps as graphs")


def _edit(module: SourceModule, fact: Call) -> Edit | None:
    if fact.name == _ASSIGNED:
        statement = module.parents.get(fact.at.node)
        alone = (
            isinstance(statement, ast.Assign) and len(statement.targets) == 1 and _is_true(statement.value)
        )
        return remove_statement(module, statement) if alone and isinstance(statement, ast.stmt) else None
    if fact.name in _SWITCHES:
        given = [*fact.call.args, *(keyword.value for keyword in fact.call.keywords)]
        statement = module.parents.get(fact.call)
        written = isinstance(statement, ast.Expr) and len(given) == 1 and _is_true(given[0])
        return remove_statement(module, statement) if written and isinstance(statement, ast.stmt) else None
    keyword = next((one for one in fact.call.keywords if one.arg == "run_eagerly"), None)
    if keyword is None or not _is_true(keyword.value):
        return None
    return remove_argument(module, fact.call, keyword)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _list_compiled(module: SourceModule, fact: Call) -> Iterator[ast.AST]:
    """Yield the functions and classes of this file that run in a graph once the switch is gone.

    These are steps, layers and functions under `tf.function`, and the losses and metrics that the call names.
    """
    named = {node.id for node in ast.walk(fact.call) if isinstance(node, ast.Name)}
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            in_class = isinstance(module.parents.get(node), ast.ClassDef)
            decorated = any("function" in ast.unparse(one) for one in node.decorator_list)
            if decorated or (node.name in _IN_STEPS and in_class) or node.name in named:
                yield node
        elif isinstance(node, ast.ClassDef) and node.name in named:
            yield node


def _needs_python(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Call) and is_host_call(node) for node in ast.walk(function))
