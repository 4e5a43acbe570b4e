"""Evaluate expressions: a handler for each kind of syntax node."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stoker.doctor.check.source import attributes, calls, gates, guesses, imports, loops, reads
from stoker.doctor.check.source.binding import bind
from stoker.doctor.check.source.operators import arithmetic, compare
from stoker.doctor.check.source.values import (
    NONE,
    UNKNOWN,
    Api,
    Array,
    Func,
    Lazy,
    Py,
    Seq,
    Symbolic,
    Tensor,
    Value,
    element_of,
    join,
    join_all,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


def _constant(m: Machine, node: ast.Constant) -> Value:
    value = node.value
    if value is None:
        return NONE
    if isinstance(value, (bool, int, float, str)):
        return Py(type(value).__name__, value)
    return Py("object")


def _name(m: Machine, node: ast.Name) -> Value:
    found = m.frame.scope.find(node.id)
    if isinstance(found, Lazy):
        m.frame.scope.settle(node.id, UNKNOWN)
        found = imports.settle(m, found)
        m.frame.scope.settle(node.id, found)
    if found is not None:
        return _note_captured(m, found)
    if node.id in _BUILTINS:
        return Api(f"builtins.{node.id}")
    return _note_captured(m, attributes.resolve_star_name(m.frame.module, node.id))


def _note_captured(m: Machine, value: Value) -> Value:
    """Note if a pipeline's function uses a value that may change while the pipeline runs: a variable or an unknown."""
    if m.frame.mapped and (value is UNKNOWN or (isinstance(value, Tensor) and value.variable)):
        m.note("+changeable")
    return value


def _attribute(m: Machine, node: ast.Attribute) -> Value:
    return _note_captured(m, attributes.attribute(m, m.value(node.value), node))


def _call(m: Machine, node: ast.Call) -> Value:
    if not m.spend():
        return UNKNOWN
    arguments = calls.evaluate_arguments(m, node)
    if isinstance(node.func, ast.Attribute):
        return calls.call_method(m, m.value(node.func.value), node.func, node, arguments)
    return m.call(m.value(node.func), node, arguments)


def _binary(m: Machine, node: ast.BinOp) -> Value:
    left, right = m.value(node.left), m.value(node.right)
    for side, value, other in ((node.left, left, right), (node.right, right, left)):
        # A counter divided by `total_steps` is a number, even if the total is unknown.
        if value is UNKNOWN and isinstance(other, Py) and other.varies and guesses.names_count(side):
            return Py("float", varies=True)
    return arithmetic(m, node, node.op, left, right)


def _unary(m: Machine, node: ast.UnaryOp) -> Value:
    value = m.value(node.operand)
    if isinstance(node.op, ast.Not):
        reads.note_test(m, node.operand, value)
        return Py("bool", varies=isinstance(value, Py) and value.varies)
    if isinstance(node.op, ast.USub) and isinstance(value, Py) and isinstance(value.const, (int, float)):
        return Py(value.type, -value.const)
    return Tensor(host=value.host) if isinstance(value, Tensor) else value


def _boolean(m: Machine, node: ast.BoolOp) -> Value:
    values: list[Value] = []
    frame = m.frame
    rare = False
    for position, operand in enumerate(node.values):
        # `step % 50 == 0 and loss.numpy() > 3` reads the loss only every fifty steps.
        with m.running(hot=frame.hot and not rare, repeated=frame.repeated and not rare):
            value = m.value(operand)
            if position < len(node.values) - 1:
                reads.note_test(m, operand, value)
        values.append(value)
        rare = rare or (isinstance(node.op, ast.And) and gates.find_rare_branch(m, operand) == "body")
    flags = [isinstance(v, Py) and v.rare for v in values]
    if any(flags) if isinstance(node.op, ast.And) else all(flags):
        return Py("bool", rare=True)
    if isinstance(node.op, ast.And) and isinstance(values[-1], Tensor):
        return values[-1]
    return join_all(values)


def _conditional(m: Machine, node: ast.IfExp) -> Value:
    reads.note_test(m, node.test, m.value(node.test))
    return join(m.value(node.body), m.value(node.orelse))


def _sequence(m: Machine, node: ast.List | ast.Tuple | ast.Set) -> Value:
    kind = {ast.List: "list", ast.Tuple: "tuple"}.get(type(node), "set")
    if any(isinstance(item, ast.Starred) for item in node.elts):
        parts = [
            element_of(m.value(e.value)) if isinstance(e, ast.Starred) else m.value(e) for e in node.elts
        ]
        return Seq(kind, element=join_all(parts))
    return Seq(kind, items=tuple(m.value(item) for item in node.elts))


def _dict(m: Machine, node: ast.Dict) -> Value:
    keys = tuple(
        k.value if isinstance(k, ast.Constant) and isinstance(k.value, str) else "" for k in node.keys
    )
    for key in node.keys:
        if key is not None:
            m.value(key)
    items = tuple(m.value(value) for value in node.values)
    if all(keys):
        return Seq("dict", items=items, keys=keys)
    return Seq("dict", element=join_all(items))


def _subscript(m: Machine, node: ast.Subscript) -> Value:
    owner = m.value(node.value)
    index = m.value(node.slice)
    if isinstance(owner, Seq):
        return _item(m, node, owner, index)
    if isinstance(owner, Tensor):
        # Indexing is not a step: a loop that does nothing else walks over the results of one step.
        return Tensor(
            host=owner.host,
            dtype=owner.dtype,
            ragged=owner.ragged or _grows(m, node.slice),
            pixels=owner.pixels,
        )
    if isinstance(owner, Array):
        if isinstance(index, Tensor):
            reads.read(m, node.slice, index, "indexes an ndarray")
        return Array(owner.dtype, owner.pixels, owner.labels, 0 if owner.size > 0 else owner.size)
    if isinstance(owner, Symbolic):
        return Symbolic()
    if owner is UNKNOWN and _adds_numpy_axis(m, node.slice):
        return Array()
    return attributes.item_of(owner)


def _adds_numpy_axis(m: Machine, index: ast.expr) -> bool:
    """Return whether an index uses `np.newaxis`, as in `ob[np.newaxis, :]`: then `ob` is an ndarray, not a tensor."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Attribute) and m.value(part) == Api("np.newaxis") for part in parts)


def _grows(m: Machine, index: ast.expr) -> bool:
    """Return whether a slice changes the shape from round to round, as in `x[:, :t]` with a changing `t`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for part in parts:
        if isinstance(part, ast.Slice) and (part.lower is None) != (part.upper is None):
            bound = m.value(part.lower or part.upper or part)
            if isinstance(bound, Py) and bound.varies and bound.type == "int":
                return True
    return False


def _item(m: Machine, node: ast.Subscript, owner: Seq, index: Value) -> Value:
    if isinstance(node.slice, ast.Slice):
        return Seq(owner.kind, element=element_of(owner), length=None)
    if isinstance(index, Tensor) and owner.kind in ("list", "tuple"):
        reads.read(m, node.slice, index, "indexes a list")
    const = index.const if isinstance(index, Py) else None
    if owner.items is not None:
        if isinstance(const, str) and owner.keys and const in owner.keys:
            return owner.items[owner.keys.index(const)]
        if isinstance(const, int) and -len(owner.items) <= const < len(owner.items) and not owner.keys:
            return owner.items[const]
    return element_of(owner)


def _slice(m: Machine, node: ast.Slice) -> Value:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            m.value(part)
    return UNKNOWN


def _format(m: Machine, node: ast.JoinedStr) -> Value:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            reads.read(m, part.value, m.value(part.value), "is formatted")
            if part.format_spec is not None:
                m.value(part.format_spec)
    return Py("str", varies=True)


def _comprehension(m: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    kind = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}.get(type(node), "generator")
    names = m.frame.scope.names
    before = dict(names)
    elements: list[Value] = []

    def produce(depth: int) -> None:
        if depth == len(node.generators):
            if isinstance(node, ast.DictComp):
                m.value(node.key)
                elements.append(m.value(node.value))
            else:
                elements.append(m.value(node.elt))
            return
        generator = node.generators[depth]
        over = loops.walk(m.value(generator.iter))

        def body() -> None:
            bind(m, generator.target, over.element)
            for test in generator.ifs:
                reads.note_test(m, test, m.value(test))
            produce(depth + 1)

        loops.run(m, node, over, body)

    produce(0)
    names.clear()
    names.update(before)
    return Seq(kind, element=elements[-1] if elements else UNKNOWN, varies=True)


def _lambda(m: Machine, node: ast.Lambda) -> Value:
    function = Func(node, m.frame.module, m.frame.scope)
    m.functions.setdefault(node, function)
    return function


def _walrus(m: Machine, node: ast.NamedExpr) -> Value:
    value = m.value(node.value)
    bind(m, node.target, value)
    return value


def _yield(m: Machine, node: ast.Yield) -> Value:
    m.frame.yields.append(NONE if node.value is None else m.value(node.value))
    return UNKNOWN


def _yield_from(m: Machine, node: ast.YieldFrom) -> Value:
    m.frame.yields.append(element_of(m.value(node.value)))
    return UNKNOWN


def _interpret_inner(m: Machine, node: ast.Await | ast.Starred) -> Value:
    return m.value(node.value)


HANDLERS: dict[type[ast.AST], Callable[[Machine, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: compare,
    ast.IfExp: _conditional,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.JoinedStr: _format,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _interpret_inner,
    ast.Starred: _interpret_inner,
}
