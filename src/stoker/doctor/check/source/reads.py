"""Find the places where Python needs a tensor's value, so that the host waits for the device."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import TensorRead
from stoker.doctor.check.source.values import Seq, Tensor, Value, is_tensor

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

# Builtins that turn a tensor into a Python value.
BUILTINS = {
    "float": "becomes a Python float",
    "int": "becomes a Python int",
    "bool": "becomes a Python bool",
    "complex": "becomes a Python complex",
    "str": "becomes a string",
    "repr": "becomes a string",
    "format": "becomes a string",
    "round": "is rounded in Python",
    "min": "is compared in Python",
    "max": "is compared in Python",
    "sorted": "is sorted in Python",
    "any": "is tested in Python",
    "all": "is tested in Python",
    "range": "bounds a Python range",
    "print": "is printed",
}
_SORTING = frozenset({"min", "max", "sorted", "any", "all"})
# Functions that need numbers, and so read the tensors passed to them.
NUMBERS = ("math.", "statistics.", "decimal.")
LOGGING = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})
# Methods of progress bars and experiment trackers that format or store their arguments.
SINKS = frozenset(
    {
        "set_postfix",
        "set_postfix_str",
        "set_description",
        "set_description_str",
        "add_scalar",
        "add_scalars",
        "log_metric",
        "log_metrics",
        "log_scalar",
        "writerow",
        "write",
    }
)
TRACKERS = frozenset({"wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "neptune.log_metric"})


def read(m: Machine, node: ast.AST, value: Value, how: str) -> bool:
    """Note a read if the value is a tensor on the device. Return whether it is."""
    if not is_tensor(value):
        return False
    m.emit(TensorRead(m.at(node), how))
    return True


def note_test(m: Machine, node: ast.expr, value: Value) -> None:
    """Note that `if`, `while`, `and` or `not` tests a value."""
    read(m, node, value, "decides a Python branch")


def note_deep_read(m: Machine, node: ast.AST, value: Value, how: str) -> None:
    """Note a read if the value is a tensor, or a container of tensors."""
    if read(m, node, value, how) or not isinstance(value, Seq):
        return
    for item in value.items or (value.element,):
        if isinstance(item, Seq):
            note_deep_read(m, node, item, how)
        elif read(m, node, item, how):
            return


def read_formatted(m: Machine, node: ast.AST, value: Value) -> None:
    """Note the reads of `"%f" % value` and `"{}".format(value)`."""
    parts = list(ast.iter_child_nodes(node))
    place = parts[-1] if isinstance(node, ast.BinOp) else node
    if isinstance(value, Seq) and value.items is not None and isinstance(place, ast.Tuple):
        for element, item in zip(place.elts, value.items, strict=False):
            read(m, element, item, "is formatted")
        return
    note_deep_read(m, place, value, "is formatted")


def note_builtin(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> None:
    """Note the reads of a builtin function."""
    how = BUILTINS.get(name)
    if how is None:
        return
    place: ast.AST = node
    for argument, value in arguments.positional:
        if name in _SORTING:
            note_deep_read(m, node, value, how)
            continue
        # For a `print` over several lines, note each read at the argument's own line.
        place = argument if name == "print" else node
        if name == "print":
            note_deep_read(m, place, value, how)
        else:
            read(m, place, value, how)


def note_arguments(m: Machine, arguments: Arguments, how: str) -> None:
    """Note that a logger, a tracker, or a NumPy or math function reads all its arguments."""
    for argument, value in arguments.pairs:
        note_deep_read(m, argument, value, how)


def count_tensors(arguments: Arguments) -> int:
    """Return the number of tensors among the arguments."""
    return sum(isinstance(value, Tensor) for value in arguments.values)
