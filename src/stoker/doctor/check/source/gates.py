"""Find branches that run rarely: `if step % 100 == 0`, the first or last iteration, a clock, a debug switch."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.source.names import last_name
from stoker.doctor.check.source.values import UNKNOWN, Py, Value

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

# A branch that runs in no more than this many iterations of a loop is rare.
_FEW = 10
_RARE_NAMES = re.compile(
    r"(^|_)(debug|done|terminated|truncated|terminal|finished|is_last|last_batch|last_step|first_batch|first_step"
    r"|is_first|should_log|log_now|do_log|should_stop|is_chief_log|interrupted)($|_)"
)
_RARE_CALLS = re.compile(r"(^|_)(should|is_time|time_to|every|trigger|needs)(_|$)|^(every|debug)")
# Branches that ask for NaN or infinity are rare.
_BROKEN = frozenset({"isnan", "is_nan", "isinf", "is_inf"})
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "equal": ast.Eq,
    "not_equal": ast.NotEq,
    "less": ast.Lt,
    "less_equal": ast.LtE,
    "greater": ast.Gt,
    "greater_equal": ast.GtE,
}
_INVERSE = {"body": "else", "else": "body", "": ""}
# `step % 2 == 0` holds at every other step, which is not rare.
_OFTEN = 2
_REMAINDERS = ("mod", "floormod", "divmod")
_CLOCKS = frozenset({"time", "perf_counter", "monotonic", "now", "process_time"})


def find_rare_branch(m: Machine, test: ast.expr) -> str:
    """Return `body` if the body runs rarely, `else` if the other branch does, or an empty string."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _INVERSE[find_rare_branch(m, test.operand)]
    if isinstance(test, ast.BoolOp):
        return _judge_several(m, test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _judge_comparison(m, test)
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod):
        # `if step % 100:` is true nearly always.
        return "else" if modulo(m, test) else ""
    if isinstance(test, ast.Call):
        known = _judge_call(m, test)
        if known is not None:
            return known
    if isinstance(test, ast.Constant):
        return "" if test.value else "body"
    return "body" if _is_rare_name(m, test) else ""


def _judge_several(m: Machine, test: ast.BoolOp) -> str:
    return _combine(
        [find_rare_branch(m, value) for value in test.values], all_of=isinstance(test.op, ast.And)
    )


def _combine(branches: list[str], *, all_of: bool) -> str:
    if all_of:
        return "body" if "body" in branches else ("else" if all(b == "else" for b in branches) else "")
    return "body" if all(b == "body" for b in branches) else ("else" if "else" in branches else "")


def _judge_call(m: Machine, test: ast.Call) -> str | None:
    """Judge `tf.logical_and(a, b)` and the like, and tests for NaN. Return None for any other call."""
    name = last_name(test.func)
    if name in ("logical_and", "logical_or") and len(test.args) == 2:
        branches = [find_rare_branch(m, argument) for argument in test.args]
        return _combine(branches, all_of=name == "logical_and")
    if name in _COMPARISONS and len(test.args) == 2:
        comparison = ast.Compare(test.args[0], [_COMPARISONS[name]()], [test.args[1]])
        return _judge_comparison(m, ast.copy_location(comparison, test))
    if name == "logical_not" and test.args:
        return _INVERSE[find_rare_branch(m, test.args[0])]
    return "body" if _asks_for_nan(test) else None


@functools.lru_cache(maxsize=4096)
def _asks_for_nan(test: ast.Call) -> bool:
    return any(isinstance(node, ast.Call) and last_name(node.func) in _BROKEN for node in ast.walk(test))


def _judge_comparison(m: Machine, test: ast.Compare) -> str:
    operator, left, right = test.ops[0], test.left, test.comparators[0]
    remainders = [found for side in (left, right) if (found := modulo(m, side)) is not None]
    if remainders:
        if not any(remainders):
            return ""
        if isinstance(operator, ast.Eq):
            return "body"
        if isinstance(operator, (ast.NotEq, ast.Gt)):
            return "else"
        return "body" if isinstance(operator, (ast.Lt, ast.LtE)) else ""
    if isinstance(operator, (ast.Is, ast.IsNot)):
        return ""
    values = (_read_quietly(m, left), _read_quietly(m, right))
    if _reads_clock(left) or _reads_clock(right):
        return "body" if isinstance(operator, (ast.Gt, ast.GtE)) else "else"
    counts = any(isinstance(v, Py) and v.varies and v.type in ("int", "float") for v in values)
    counts = counts or any(_is_counted(m, side) for side in (left, right))
    if isinstance(operator, ast.Eq):
        return "body" if counts else ""
    if isinstance(operator, ast.NotEq):
        return "else" if counts else ""
    if isinstance(operator, ast.In):
        return "body" if counts else ""
    if isinstance(operator, (ast.Lt, ast.LtE)) and counts and _is_few(values[1]):
        return "body"
    return ""


def _read_quietly(m: Machine, node: ast.expr) -> Value:
    with m.quietly():
        return m.value(node)


def _is_few(value: Value) -> bool:
    return isinstance(value, Py) and isinstance(value.const, int) and value.const <= _FEW


def modulo(m: Machine, node: ast.expr) -> bool | None:
    """Return whether an expression takes a remainder by more than a step or two; None if it takes none."""
    by = _divisor(node)
    return None if by is None else not _is_often(_read_quietly(m, by))


def runs_every_few(m: Machine, test: ast.expr) -> bool:
    """Return whether a test holds every few steps, as in `i % 5 == 0` for the generator of a WGAN."""
    by = _divisor(test)
    value = _read_quietly(m, by) if by is not None else UNKNOWN
    return isinstance(value, Py) and isinstance(value.usual, int) and 0 < value.usual <= _FEW


# Cached: a test is judged again in every pass of every loop around it.
@functools.lru_cache(maxsize=4096)
def _divisor(node: ast.expr) -> ast.expr | None:
    for child in ast.walk(node):
        if isinstance(child, ast.BinOp) and isinstance(child.op, ast.Mod):
            if not (isinstance(child.left, ast.Constant) and isinstance(child.left.value, str)):
                return child.right
        elif isinstance(child, ast.Call) and last_name(child.func) in _REMAINDERS and child.args:
            return child.args[-1]
    return None


def _is_often(value: Value) -> bool:
    by = value.usual if isinstance(value, Py) else None
    return isinstance(by, int) and 0 < by <= _OFTEN


def _is_counted(m: Machine, side: ast.expr) -> bool:
    """Return whether an expression is a counter: `state.n` where the enclosing loop or function has `state.n += 1`."""
    if not isinstance(side, ast.Attribute):
        return False
    around = m.frame.loops[-1] if m.frame.loops else m.frame.function
    return around is not None and side.attr in _find_counters(around) and _read_quietly(m, side) is UNKNOWN


@functools.lru_cache(maxsize=64)
def _find_counters(around: ast.AST) -> frozenset[str]:
    """Return the attributes that a loop or function counts up."""
    return frozenset(name for node in ast.walk(around) for name in _counts_up(node))


def _counts_up(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        if isinstance(node.target, ast.Attribute):
            yield node.target.attr
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        target, left = node.targets[0], node.value.left
        if isinstance(target, ast.Attribute) and isinstance(left, ast.Attribute) and target.attr == left.attr:
            yield target.attr


@functools.lru_cache(maxsize=4096)
def _reads_clock(node: ast.expr) -> bool:
    return any(
        isinstance(child, ast.Call) and last_name(child.func) in _CLOCKS and not child.args
        for child in ast.walk(node)
    )


def _is_rare_name(m: Machine, test: ast.expr) -> bool:
    value = _read_quietly(m, test)
    if isinstance(value, Py) and value.rare:
        return True
    if isinstance(value, Py) and value.usual and not value.varies:
        # A debug switch that is on by default is not rare.
        return False
    if isinstance(test, ast.Call):
        return bool(_RARE_CALLS.search(last_name(test.func).lower()))
    return bool(_RARE_NAMES.search(last_name(test).lower()))


def initialises(test: ast.expr, body: list[ast.stmt]) -> bool:
    """Return whether a branch runs only the first time: `if self.x is None: self.x = ...` and the like."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        held = test.operand
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is):
        held = test.left
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn):
        held = test.comparators[0]
    else:
        return False
    name = last_name(held)
    filled = [t for statement in body if isinstance(statement, ast.Assign) for t in statement.targets]
    filled += [
        statement.value.func.value
        for statement in body
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
    ]
    return bool(name) and any(last_name(target) == name for target in filled)


def resets_counter(test: ast.expr, body: list[ast.stmt]) -> bool:
    """Return whether a branch resets a counter, as in `if count >= 100: count = 0`. This is a modulo in other words."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.GtE, ast.Gt, ast.Eq)):
        return False
    name = last_name(test.left)
    zeroed = [
        target
        for statement in body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value == 0
        for target in statement.targets
    ]
    return bool(name) and any(last_name(target) == name for target in zeroed)
