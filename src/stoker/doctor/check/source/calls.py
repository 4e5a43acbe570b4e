"""Dispatch calls to the program's own functions or to what is known about the libraries."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source import (
    attributes,
    classes,
    containers,
    functions,
    guesses,
    library,
    pipelines,
    tensors,
    things,
)
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Api,
    Array,
    Class,
    Dataset,
    File,
    Func,
    Instance,
    Method,
    Py,
    Seq,
    Tensor,
    Thing,
    Value,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine


def evaluate_arguments(m: Machine, node: ast.Call) -> Arguments:
    """Evaluate a call's arguments from left to right."""
    result = Arguments()
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = m.value(argument.value)
            if isinstance(value, Seq) and value.items is not None and not value.keys:
                result.positional += [(argument.value, item) for item in value.items]
            else:
                result.open = True
        else:
            result.positional.append((argument, m.value(argument)))
    for keyword in node.keywords:
        value = m.value(keyword.value)
        if keyword.arg is not None:
            result.named[keyword.arg] = (keyword.value, value)
        elif isinstance(value, Seq) and value.keys and value.items is not None:
            named = zip(value.keys, value.items, strict=True)
            result.named.update({key: (keyword.value, item) for key, item in named})
        else:
            result.open = True
    return result


def call(m: Machine, function: Value, node: ast.Call, arguments: Arguments) -> Value:
    """Call a value."""
    if isinstance(function, Api):
        return library.call(m, function.name, node, arguments)
    if isinstance(function, Func):
        return functions.call_function(m, function, node, arguments)
    if isinstance(function, Class):
        return classes.instantiate(m, function.info, node, arguments)
    if isinstance(function, Instance):
        return classes.call_instance(m, function, node, arguments)
    if isinstance(function, Method):
        return _method_of(m, function.receiver, function.name, node.func, node, arguments)
    if isinstance(function, Thing):
        return things.call_thing(m, function, node, arguments)
    if function is UNKNOWN:
        return guesses.call(m, node, arguments)
    return UNKNOWN


def call_method(
    m: Machine, owner: Value, attribute: ast.Attribute, node: ast.Call, arguments: Arguments
) -> Value:
    """Call `owner.attribute(...)`."""
    if isinstance(owner, (Api, File, Instance, Class)):
        found = attributes.attribute(m, owner, attribute)
        if found is UNKNOWN and isinstance(owner, Instance):
            return classes.inherited_method(m, owner, attribute, node, arguments)
        return call(m, found, node, arguments)
    return _method_of(m, owner, attribute.attr, attribute.value, node, arguments)


def _method_of(
    m: Machine, owner: Value, name: str, receiver: ast.expr, node: ast.Call, arguments: Arguments
) -> Value:
    if isinstance(owner, Dataset):
        return pipelines.method(m, owner, name, node, arguments)
    if isinstance(owner, Tensor):
        return tensors.tensor_method(m, owner, name, node)
    if isinstance(owner, Array):
        return tensors.array_method(owner, name, arguments)
    if isinstance(owner, (Seq, Py)):
        return containers.method(m, owner, name, receiver, node, arguments)
    if isinstance(owner, Thing):
        return things.method(m, owner, name, node, arguments)
    if isinstance(owner, Func):
        return functions.method(m, owner, name, node, arguments)
    if owner is UNKNOWN:
        return guesses.method(m, name, receiver, node, arguments)
    return UNKNOWN
