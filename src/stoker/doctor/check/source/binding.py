"""Assign values to names, attributes, subscripts and tuples."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source import pipelines, reads
from stoker.doctor.check.source.facts import Call
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
    join,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine


def bind(m: Machine, target: ast.expr, value: Value) -> None:
    """Assign a value to a target."""
    if isinstance(target, ast.Name):
        m.frame.scope.names[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(m, target.elts, value)
    elif isinstance(target, ast.Starred):
        bind(m, target.value, Seq("list", element=element_of(value)))
    elif isinstance(target, ast.Attribute):
        _attribute(m, target, value)
    elif isinstance(target, ast.Subscript):
        _subscript(m, target, value)


def _unpack(m: Machine, targets: list[ast.expr], value: Value) -> None:
    items = value.items if isinstance(value, Seq) else None
    starred = any(isinstance(target, ast.Starred) for target in targets)
    if items is not None and len(items) == len(targets) and not starred:
        for target, item in zip(targets, items, strict=True):
            bind(m, target, item)
        return
    element = element_of(value)
    for target in targets:
        bind(m, target, element)


def _attribute(m: Machine, target: ast.Attribute, value: Value) -> None:
    owner = m.value(target.value)
    if isinstance(owner, Instance):
        held = owner.info.attributes
        old = held.get(target.attr)
        # A pipeline is built statement by statement: the last one counts, not what an earlier method stored.
        held[target.attr] = value if old is None or isinstance(value, Dataset) else join(old, value)
        if isinstance(value, Thing) and value.type == "iterator":
            pipelines.consume(m, target, value.about["dataset"], "stored")
    elif isinstance(owner, Thing):
        if target.attr == "run_eagerly" and isinstance(value, Py) and value.const is True:
            m.emit(Call(m.at(target), "run_eagerly=True", ast.Call(target, [], []), owner))
        owner.about[target.attr] = value


def _subscript(m: Machine, target: ast.Subscript, value: Value) -> None:
    owner = m.value(target.value)
    m.value(target.slice)
    if isinstance(owner, Array) and isinstance(value, Tensor):
        reads.read(m, target, value, "is stored into an ndarray")
    if isinstance(target.value, ast.Name) and isinstance(owner, Seq):
        _store_item(m, target, target.value.id, owner, value)
    frame = m.frame
    if frame.traced is not None and isinstance(target.value, ast.Attribute) and isinstance(owner, Seq):
        m.side_effect(target, f"`{ast.unparse(target.value)}` is changed")


def _store_item(m: Machine, target: ast.Subscript, name: str, owner: Seq, value: Value) -> None:
    key = target.slice.value if isinstance(target.slice, ast.Constant) else None
    if isinstance(key, str) and owner.keys is not None and owner.items is not None and key in owner.keys:
        position = owner.keys.index(key)
        items = (*owner.items[:position], value, *owner.items[position + 1 :])
        m.frame.scope.names[name] = Seq(owner.kind, items=items, keys=owner.keys)
        return
    old = element_of(owner)
    element = value if old is UNKNOWN else join(old, value)
    m.frame.scope.names[name] = Seq(owner.kind, element=element)
