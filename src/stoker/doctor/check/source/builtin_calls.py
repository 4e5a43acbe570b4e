"""Calls of Python's builtin functions on values whose type is known."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from stoker.doctor.check.source import guesses, loops, pipelines, reads
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Array,
    Dataset,
    Instance,
    Py,
    Seq,
    Tensor,
    Thing,
    Value,
    element_of,
    join_all,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_CASTS = frozenset({"float", "int", "bool", "str", "repr", "round", "format", "complex"})


def call(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a builtin, e.g. `builtins.float`."""
    short = name.removeprefix("builtins.")
    reads.note_builtin(m, short, node, arguments)
    handler = _HANDLERS.get(short)
    if handler is not None:
        return handler(m, node, arguments)
    if short in _CASTS:
        type_ = {"repr": "str", "format": "str", "round": "float"}.get(short, short)
        return Py(type_, arguments.const(0, "") if type_ != "str" else None, varies=_varies(arguments))
    if short in ("min", "max", "sum", "abs", "pow", "divmod"):
        return _reduce(short, arguments)
    return UNKNOWN


def _varies(arguments: Arguments) -> bool:
    return any(isinstance(v, (Tensor, Array)) or (isinstance(v, Py) and v.varies) for v in arguments.values)


def _reduce(name: str, arguments: Arguments) -> Value:
    values = arguments.values
    if len(values) == 1 and name in ("min", "max", "sum"):
        values = [element_of(values[0])]
    tensors = [v for v in values if isinstance(v, Tensor)]
    if tensors:
        return tensors[0]
    if any(isinstance(v, Array) for v in values):
        return Array()
    if values and all(isinstance(v, Py) for v in values):
        return Py("float", varies=_varies(arguments) or any(isinstance(v, Py) and v.varies for v in values))
    return UNKNOWN


def range_of(arguments: Arguments) -> Seq:
    """Evaluate `range(...)`: varying integers, and their number if the code shows it."""
    bounds = [v.const if isinstance(v, Py) else None for v in arguments.by_position]
    length = None
    if bounds and all(isinstance(b, int) for b in bounds):
        try:
            length = len(range(*(b for b in bounds if isinstance(b, int))))
        except (ValueError, TypeError, OverflowError):
            length = None
    return Seq("range", element=Py("int", varies=True), length=length)


def _range(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    return range_of(arguments)


def _enumerate(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    over = arguments.get(0, "iterable") or UNKNOWN
    if over is UNKNOWN and arguments.positional:
        over = guesses.guess_iterable(m, arguments.positional[0][0])
    pair = Seq("tuple", items=(Py("int", varies=True), loops.walk(over).element))
    return Seq("generator", element=pair, source=over)


def _zip(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    walks = [loops.walk(value) for value in arguments.by_position]
    if not walks:
        return UNKNOWN
    sources = [v for v, w in zip(arguments.by_position, walks, strict=True) if w.dataset or w.parts]
    lengths = [w.length for w in walks if w.length is not None]
    items = tuple(w.element for w in walks)
    return Seq(
        "generator",
        element=Seq("tuple", items=items),
        source=sources[0] if sources else None,
        length=min(lengths) if lengths else None,
        beside=tuple(sources[1:]),
    )


def _len(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    value = arguments.get(0, "") or UNKNOWN
    if isinstance(value, Seq) and value.items is not None and value.kind != "dict":
        return Py("int", len(value.items))
    return Py("int", varies=isinstance(value, Seq) and value.varies and bool(m.frame.loops))


def _iter(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    value = arguments.get(0, "") or UNKNOWN
    if isinstance(value, Dataset):
        return Thing("iterator", "iter", node, about={"dataset": value})
    return value


def _next(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    return next_of(m, node, arguments.get(0, "") or UNKNOWN)


def next_of(m: Machine, node: ast.Call, iterator: Value) -> Value:
    """Return the next element of an iterator. Inside a hot loop, this counts as consuming the pipeline."""
    if isinstance(iterator, Thing) and iterator.type == "iterator":
        dataset = iterator.about["dataset"]
        if m.frame.hot:
            pipelines.consume(m, node, dataset, "loop")
        return loops.walk(iterator).element
    if isinstance(iterator, Seq) and m.frame.hot:
        pipelines.consume(m, node, loops.walk(iterator).dataset, "loop")
    return element_of(iterator)


def _list(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    value = arguments.get(0, "")
    kind = node.func.id if isinstance(node.func, ast.Name) else "list"
    if value is None:
        keys = tuple(arguments.named)
        return Seq(kind, items=tuple(arguments.by_name.values()), keys=keys or None)
    over = loops.walk(value)
    length = over.length
    return Seq(kind, element=over.element, length=length, source=value if isinstance(value, Seq) else None)


def _reorder(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    value = arguments.get(0, "") or UNKNOWN
    return Seq("list", element=loops.walk(value).element, length=loops.walk(value).length)


def _map(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    if len(arguments.positional) < 2:
        return UNKNOWN
    (where, function), *rest = arguments.positional
    produced: list[Value] = []
    over = loops.walk(rest[0][1])

    def body() -> None:
        given = Arguments.at(where, *(loops.walk(v).element for _, v in rest))
        produced.append(m.call(function, node, given))

    loops.run(m, node, over, body)
    return Seq("generator", element=join_all(produced))


def _super(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    for value in m.frame.scope.names.values():
        if isinstance(value, Instance):
            return Thing("super", about={"instance": value})
    return UNKNOWN


def _test(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    return Py("bool")


def _getattr(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    name = arguments.const(1, "")
    if isinstance(name, str) and name.isidentifier():
        attribute = ast.copy_location(ast.Attribute(node.args[0], name, ast.Load()), node)
        return m.value(attribute)
    return UNKNOWN


_HANDLERS: dict[str, Callable[[Machine, ast.Call, Arguments], Value]] = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "len": _len,
    "iter": _iter,
    "next": _next,
    "list": _list,
    "tuple": _list,
    "dict": _list,
    "set": _list,
    "sorted": _reorder,
    "reversed": _reorder,
    "map": _map,
    "super": _super,
    "isinstance": _test,
    "hasattr": _test,
    "callable": _test,
    "getattr": _getattr,
}
