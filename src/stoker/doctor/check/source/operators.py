"""Arithmetic and comparison between values of any kind."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stoker.doctor.check.source import gates, reads
from stoker.doctor.check.source.values import UNKNOWN, Array, Py, Seq, Symbolic, Tensor, Value

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_SMALL: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a / b,
}
_LIMIT = 10**12


def arithmetic(m: Machine, node: ast.AST, operator: ast.operator, left: Value, right: Value) -> Value:
    """Evaluate `left operator right`."""
    for value in (left, right):
        if isinstance(value, Symbolic):
            return Symbolic(scaled=True)
    if isinstance(left, Py) and left.type == "str" and isinstance(operator, ast.Mod):
        reads.read_formatted(m, node, right)
        return Py("str", varies=True)
    tensor = left if isinstance(left, Tensor) else right
    if isinstance(tensor, Tensor):
        m.work(strong=False)
        return _combine_with_tensor(left, right)
    for value in (left, right):
        if isinstance(value, Array):
            divides = isinstance(operator, ast.Div)
            dtype = value.dtype if value.dtype.startswith("float") or not divides else "float64"
            size = value.size * (8 if dtype == "float64" and value.dtype == "uint8" else 1)
            return Array(dtype=dtype, size=size)
    if isinstance(left, Py) and isinstance(right, Py):
        return _combine_plain(operator, left, right)
    if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(operator, ast.Add):
        if left.items is not None and right.items is not None:
            return Seq(left.kind, items=left.items + right.items)
        return Seq(left.kind, element=left.element if left.element is not UNKNOWN else right.element)
    if isinstance(left, Seq) and isinstance(operator, ast.Mult):
        return left
    replicas = any(isinstance(v, Py) and v.replicas for v in (left, right))
    return Py("object", replicas=True) if replicas else UNKNOWN


def _combine_with_tensor(left: Value, right: Value) -> Value:
    tensors = [v for v in (left, right) if isinstance(v, Tensor)]
    # A dataset's element times a constant is still computed on the host.
    host = all(t.host for t in tensors) and not any(isinstance(v, Array) for v in (left, right))
    return Tensor(host=host, ragged=any(t.ragged for t in tensors))


def _combine_plain(operator: ast.operator, left: Py, right: Py) -> Py:
    numbers = all(isinstance(v.const, (int, float)) and not isinstance(v.const, bool) for v in (left, right))
    const = None
    if numbers and type(operator) in _SMALL:
        try:
            const = _SMALL[type(operator)](left.const, right.const)
        except (ArithmeticError, ValueError):
            const = None
        if const is not None and abs(const) > _LIMIT:
            const = None
    types = {left.type, right.type}
    if isinstance(operator, ast.Div) or "float" in types:
        type_ = "float" if types <= {"int", "float"} else "object"
    else:
        type_ = left.type if len(types) == 1 else "object"
    return Py(type_, const, varies=left.varies or right.varies, replicas=left.replicas or right.replicas)


def compare(m: Machine, node: ast.Compare) -> Value:
    """Evaluate `a < b`, `a in b` and chains of comparisons."""
    values = [m.value(node.left), *(m.value(c) for c in node.comparators)]
    if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return Py("bool")
    if all(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
        container = values[-1]
        if isinstance(container, (Seq, Py)) and not (isinstance(container, Seq) and container.kind == "dict"):
            reads.read(m, node, values[0], "is looked for with `in`")
        return Py("bool")
    tensors = [v for v in values if isinstance(v, Tensor)]
    if tensors:
        m.work(strong=False)
        if len(node.ops) > 1:
            reads.read(m, node, tensors[0], "is tested by a chained comparison")
        return _combine_with_tensor(tensors[0], tensors[-1])
    if any(isinstance(v, Array) for v in values):
        return Array(dtype="bool")
    varies = any(isinstance(v, Py) and v.varies for v in values)
    return Py("bool", varies=varies, rare=_is_rare(m, node, values))


def _is_rare(m: Machine, node: ast.Compare, values: list[Value]) -> bool:
    if not isinstance(node.ops[0], ast.Eq):
        return False
    remainders = [gates.modulo(m, side) for side in (node.left, *node.comparators)]
    if any(found is not None for found in remainders):
        return any(remainders)
    return any(isinstance(v, Py) and v.varies and v.type == "int" for v in values)
