"""Functions and classes of the program: decorators, bases, attributes, instances."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.check.source import functions
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import ArrayFeed
from stoker.doctor.check.source.frames import CallFrame
from stoker.doctor.check.source.module import ClassInfo, FunctionNode
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Api,
    Array,
    Class,
    Func,
    Instance,
    Py,
    Scope,
    Symbolic,
    Tensor,
    Thing,
    Value,
    holds_arrays,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

# Base classes that do not call, or compile, the methods of derived classes in unseen code.
_PLAIN_BASES = (
    "builtins.",
    "abc.",
    "typing.",
    "tf.Module",
    "collections.",
    "enum.",
    "threading.",
    "unittest.",
)
_MODELS = ("keras.Model", "keras.Sequential")


def define_function(m: Machine, node: FunctionNode) -> Value:
    """Return the value of a `def` with its decorators applied."""
    value: Value = Func(node, m.frame.module, m.frame.scope)
    m.functions[node] = value  # type: ignore[assignment]
    for decorator in reversed(node.decorator_list):
        value = _decorate(m, value, decorator)
    return value


def _decorate(m: Machine, value: Value, decorator: ast.expr) -> Value:
    by = m.value(decorator)
    if isinstance(by, Api) and by.name in ("tf.function", "tf1.function"):
        return functions.compile_function(m, value, decorator, None)
    if isinstance(by, Thing) and by.type == "compiler":
        # The options are the arguments of the call that made the decorator: `@tf.function(input_signature=...)`.
        return functions.compile_function(m, value, decorator, by.about["arguments"])
    if isinstance(by, Func) and isinstance(value, Func):
        call = ast.Call(decorator, [], [])
        given = Arguments.at(decorator, value)
        result = functions.call_function(m, by, ast.copy_location(call, decorator), given)
        # A decorator that returns a closure hides the function it wraps: keep that function.
        same = isinstance(result, Func) and (result.node is value.node)
        return result if same else value
    return value


def class_info(m: Machine, node: ast.ClassDef) -> ClassInfo:
    """Run a class body, and return the class's bases, methods and class attributes."""
    bases = tuple(m.value(base) for base in node.bases)
    info = ClassInfo(node, m.frame.module, m.frame.scope, bases)
    m.classes[node] = info
    scope = Scope(m.frame.scope)
    frame = CallFrame(m.frame.module, scope, m.frame.function, presumed=m.frame.presumed)
    with m.inside(frame):
        m.block(node.body)
    info.members = {k: _adopt_method(v, info) for k, v in scope.names.items()}
    return info


def _adopt_method(value: Value, info: ClassInfo) -> Value:
    # A method sees the scope around the class, but not the class's own names.
    if isinstance(value, Func) and isinstance(value.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return replace(value, scope=info.scope)
    return value


def ancestry(info: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the class, then those of its bases that the program defines."""
    seen: set[int] = set()
    queue = [info]
    while queue:
        current = queue.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        queue += [base.info for base in current.bases if isinstance(base, Class)]


def library_bases(info: ClassInfo) -> set[str]:
    """Return the canonical names of the library classes that a class derives from."""
    return {base.name for one in ancestry(info) for base in one.bases if isinstance(base, Api)}


def is_model(info: ClassInfo) -> bool:
    """Return whether objects of a class are Keras models or layers."""
    return any(
        b in _MODELS or b.startswith("keras.layers.") or b == "keras.Layer" for b in library_bases(info)
    )


def runs_in_graph(info: ClassInfo) -> bool:
    """Return whether Keras may compile a class's methods: a model, layer, loss or metric, or an unseen base."""
    return any(base.startswith("keras.") for base in library_bases(info)) or has_unseen_base(info)


def has_unseen_base(info: ClassInfo) -> bool:
    """Return whether a class derives from one that is neither the program's own nor known to be plain."""
    bases = [base for one in ancestry(info) for base in one.bases]
    if any("test" in base.name.lower() for base in bases if isinstance(base, Api)):
        return False
    return any(
        not isinstance(base, Class) and not (isinstance(base, Api) and base.name.startswith(_PLAIN_BASES))
        for base in bases
    )


def is_callback(info: ClassInfo) -> bool:
    """Return whether objects of a class are Keras callbacks."""
    return any(base.startswith("keras.callbacks.") for base in library_bases(info))


def member(info: ClassInfo, name: str) -> Value | None:
    """Return a method or class attribute, own or inherited."""
    for one in ancestry(info):
        if name in one.members:
            return one.members[name]
    return None


def attribute(m: Machine, owner: Instance, name: str) -> Value:
    """Return an attribute of an object of the program's own classes."""
    for one in ancestry(owner.info):
        if name in one.attributes:
            return one.attributes[name]
    found = member(owner.info, name)
    if isinstance(found, Func) and not isinstance(found.node, ast.Lambda):
        return _bind(m, found, owner)
    if found is not None:
        return found
    if is_model(owner.info):
        from stoker.doctor.check.source.attributes import thing_attribute
        from stoker.doctor.check.source.values import Method

        inherited = thing_attribute(Thing("model", "keras.Model"), name)
        return UNKNOWN if isinstance(inherited, Method) else inherited
    return Thing("model", "?") if is_callback(owner.info) and name == "model" else UNKNOWN


def _bind(m: Machine, found: Func, owner: Instance) -> Value:
    assert not isinstance(found.node, ast.Lambda)
    names = {ast.unparse(d).split("(")[0].rsplit(".", 1)[-1] for d in found.node.decorator_list}
    if "staticmethod" in names:
        return found
    bound = replace(found, bound=owner)
    if names & {"property", "cached_property"}:
        call = ast.copy_location(ast.Call(ast.Name("self", ast.Load()), [], []), found.node)
        return functions.call_function(m, bound, call, Arguments())
    return bound


def instantiate(m: Machine, info: ClassInfo, node: ast.Call, arguments: Arguments) -> Value:
    """Make an object of one of the program's classes."""
    m.note("?")
    made = Instance(info)
    if is_model(info):
        m.builds(model=True)
    initialise = member(info, "__init__")
    if isinstance(initialise, Func):
        info.initialised = True
        functions.call_function(m, replace(initialise, bound=made), node, arguments)
    return made


def call_instance(m: Machine, owner: Instance, node: ast.Call, arguments: Arguments) -> Value:
    """Call an object of the program's own classes: a model, a layer, or anything with `__call__`."""
    called = member(owner.info, "__call__")
    if isinstance(called, Func):
        return functions.call_function(m, replace(called, bound=owner), node, arguments)
    if not is_model(owner.info):
        return UNKNOWN
    if any(isinstance(value, Symbolic) for value in arguments.values):
        return Symbolic(scaled=True)
    m.work(strong=True)
    feed(m, node, arguments, "is passed to a model")
    forward = member(owner.info, "call")
    if isinstance(forward, Func):
        with m.forward():
            result = functions.call_function(m, replace(forward, bound=owner), node, arguments.as_tensors())
        if result is not UNKNOWN and not isinstance(result, (Py, Array)):
            return result
    return Tensor()


def feed(m: Machine, node: ast.Call, arguments: Arguments, how: str) -> None:
    """Note the first ndarray among the arguments of a call that runs on tensors."""
    if m.frame.graph:
        return
    for expression, value in arguments.pairs:
        if holds_arrays(value):
            m.emit(ArrayFeed(m.at(node), how, expression))
            return


def inherited_method(
    m: Machine, owner: Instance, attribute_node: ast.Attribute, node: ast.Call, arguments: Arguments
) -> Value:
    """Call a method that one of the program's classes inherits from Keras, or that is unknown."""
    from stoker.doctor.check.source import guesses, things

    name = attribute_node.attr
    if is_model(owner.info):
        if name == "__call__":
            return call_instance(m, owner, node, arguments)
        about: dict[str, object] = {"instance": owner}
        return things.method(m, Thing("model", "?", about=about), name, node, arguments)
    return guesses.method(m, name, attribute_node.value, node, arguments)
