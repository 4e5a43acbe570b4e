"""Methods of lists, dicts, strings and other plain Python values."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source import builtin_calls, reads
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.values import UNKNOWN, Instance, Py, Seq, Value, element_of, join

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_ADDING = frozenset({"append", "add", "insert", "extend", "update", "appendleft"})


def method(
    m: Machine, owner: Seq | Py, name: str, receiver: ast.expr, node: ast.Call, arguments: Arguments
) -> Value:
    """Call a method of a container or of a plain value."""
    if isinstance(owner, Py):
        return _call_plain_method(m, owner, name, arguments)
    if name in _ADDING:
        _add(m, owner, name, receiver, node, arguments)
        return UNKNOWN
    if owner.kind == "dict":
        if name == "items":
            pair = Seq("tuple", items=(Py("object"), element_of(owner)))
            return Seq("list", element=pair, source=owner)
        if name in ("values", "get", "pop", "setdefault"):
            return (
                Seq("list", element=element_of(owner)) if name == "values" else _look_up_key(owner, arguments)
            )
        if name == "keys":
            return Seq("list", element=Py("object"))
    if name in ("pop", "popleft"):
        return element_of(owner)
    if name in ("next", "__next__"):
        return builtin_calls.next_of(m, node, owner)
    return owner if name == "copy" else UNKNOWN


def _look_up_key(owner: Seq, arguments: Arguments) -> Value:
    key = arguments.const(0, "key")
    if isinstance(key, str) and owner.keys and owner.items is not None and key in owner.keys:
        return owner.items[owner.keys.index(key)]
    return element_of(owner)


def _call_plain_method(m: Machine, owner: Py, name: str, arguments: Arguments) -> Value:
    if owner.type == "str" and name == "format":
        for argument, value in arguments.pairs:
            reads.note_deep_read(m, argument, value, "is formatted")
        return Py("str", varies=True)
    if owner.type == "str":
        return Seq("list", element=Py("str")) if name.endswith("split") else Py("str", varies=owner.varies)
    return UNKNOWN


def _add(m: Machine, owner: Seq, name: str, receiver: ast.expr, node: ast.Call, arguments: Arguments) -> None:
    if not arguments.positional:
        return
    added = arguments.positional[-1][1]
    if name in ("extend", "update"):
        added = element_of(added)
    grown = _grow(owner, added)
    if isinstance(receiver, ast.Name):
        if receiver.id in m.frame.scope.names:
            m.frame.scope.names[receiver.id] = grown
        elif m.frame.traced is not None:
            effect = f"the outer list `{receiver.id}` grows"
            m.side_effect(node, effect)
    elif isinstance(receiver, ast.Attribute):
        holder = m.value(receiver.value)
        if isinstance(holder, Instance):
            holder.info.attributes[receiver.attr] = grown
            if m.frame.traced is not None:
                effect = f"`{ast.unparse(receiver)}` grows"
                m.side_effect(node, effect)


def _grow(owner: Seq, added: Value) -> Seq:
    if owner.items == () or (owner.items is None and owner.element is UNKNOWN):
        return Seq(owner.kind, element=added)
    return Seq(owner.kind, element=join(element_of(owner), added), varies=True)
