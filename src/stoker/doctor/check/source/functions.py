"""Follow calls of the program's own functions, once for each set of arguments and circumstances."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stoker.doctor.check.source import guesses
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import CompiledCall, FunctionMade, TapeStep
from stoker.doctor.check.source.frames import CallFrame, LoopState
from stoker.doctor.check.source.values import (
    NONE,
    UNKNOWN,
    Array,
    Compiled,
    Func,
    Py,
    Scope,
    Seq,
    Tensor,
    Thing,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_DEPTH = 12


@dataclass(frozen=True, eq=False)
class CallSummary:
    """The result and the effects of a function call."""

    value: Value
    effects: frozenset[str] = frozenset()
    tapes: tuple[TapeStep, ...] = ()


def call_function(
    m: Machine, function: Func, node: ast.Call, arguments: Arguments, *, graph: bool | None = None
) -> Value:
    """Call one of the program's functions; `graph` says that the caller compiles it."""
    compiled = function.compiled
    frame = m.frame
    if compiled is not None and not frame.graph:
        m.emit(CompiledCall(m.at(node), compiled, function, arguments.pairs))
    in_graph = frame.graph or compiled is not None or bool(graph)
    traced = frame.traced or (function.node if compiled is not None else None)
    names = _bind_names(m, function, arguments)
    summary = follow(m, function, names, graph=in_graph, traced=traced)
    if compiled is not None and not frame.graph:
        if "+steps" not in summary.effects:
            m.work(strong=True)
        return as_tensors(summary.value)
    return summary.value


def follow(
    m: Machine,
    function: Func,
    names: dict[str, Value],
    *,
    graph: bool,
    traced: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None,
) -> CallSummary:
    """Run a function's body with these names bound, or reuse the summary of an equal call."""
    frame = m.frame
    hot, repeated = (frame.hot, frame.repeated) if not m.muted else (False, False)
    key = (
        function.node,
        function.bound,
        id(function.scope),
        tuple(names.items()),
        (
            hot,
            repeated,
            graph,
            traced is not None,
            bool(m.muted),
            frame.presumed is not None,
            frame.mapped,
            m.within_step,
        ),
    )
    summary = m.memo.get(key)
    if summary is None:
        if function.node in m.active or m.depth > _DEPTH or not m.spend():
            return CallSummary(UNKNOWN)
        summary = m.memo[key] = _run(m, function, names, graph, traced, (hot, repeated))
    _replay(m, summary)
    return summary


def _run(
    m: Machine,
    function: Func,
    names: dict[str, Value],
    graph: bool,
    traced: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None,
    circumstances: tuple[bool, bool],
) -> CallSummary:
    if not m.muted:
        m.visited.add(function.node)
    outer_effects, m.effects = m.effects, set()
    pending = len(m.pending)
    m.active.add(function.node)
    frame = CallFrame(
        function.module,
        Scope(function.scope, names),
        function.node,
        hot=circumstances[0],
        repeated=circumstances[1],
        graph=graph,
        presumed=m.frame.presumed,
        traced=traced if graph else None,
        mapped=m.frame.mapped,
    )
    tapes: tuple[TapeStep, ...] = ()
    try:
        with m.inside(frame):
            value = _body(m, function, frame)
        tapes = tuple(step for _, step in m.pending[pending:])
        del m.pending[pending:]
    finally:
        m.active.discard(function.node)
        effects, m.effects = m.effects, outer_effects
    return CallSummary(value, frozenset(effects), tapes)


def _body(m: Machine, function: Func, frame: CallFrame) -> Value:
    if isinstance(function.node, ast.Lambda):
        return m.value(function.node.body)
    m.block(function.node.body)
    if frame.yields:
        return Seq("generator", element=join_all(frame.yields))
    return join_all(frame.returns) if frame.returns else NONE


def _replay(m: Machine, summary: CallSummary) -> None:
    """Add a callee's effects to those of the caller and of the loops around the call."""
    effects = summary.effects
    m.effects |= effects
    here = m.loops[-1] if m.loops else None
    m.pending += [(here, step) for step in summary.tapes]
    if "+applies" in effects and not summary.tapes:
        m.apply_gradients()
    if here is None:
        return
    strong = "+strong" in effects and "+steps" not in effects
    here.strong |= strong
    here.often |= strong and not m.rare
    here.weak |= "+weak" in effects
    # An evaluation every N steps does not turn the loop around it into an epoch loop.
    here.inner_steps |= "+steps" in effects and not m.rare
    here.fits |= "+fits" in effects
    for built, model in (("+builds", False), ("+builds_model", True)):
        if built in effects:
            m.builds(model=model)


def _bind_names(m: Machine, function: Func, arguments: Arguments) -> dict[str, Value]:
    """Return the callee's names at its start: parameters, defaults, `*args` and `**kwargs`."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    values = [*function.partial, *arguments.by_position]
    if function.bound is not None:
        values = [function.bound, *values]
    names = {argument.arg: value for argument, value in zip(positional, values, strict=False)}
    if spec.vararg is not None:
        names[spec.vararg.arg] = Seq("tuple", items=tuple(values[len(positional) :]))
    known = {a.arg for a in (*positional, *spec.kwonlyargs)}
    names.update({name: value for name, value in arguments.by_name.items() if name in known})
    if spec.kwarg is not None:
        names[spec.kwarg.arg] = Seq("dict")
    with_default = positional[len(positional) - len(spec.defaults) :]
    pairs = [
        *zip(with_default, spec.defaults, strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        if argument.arg not in names and default is not None:
            names[argument.arg] = m.value(default) if isinstance(default, ast.Constant) else UNKNOWN
    _guess_the_rest(m, function, names)
    return names


def _guess_the_rest(m: Machine, function: Func, names: dict[str, Value]) -> None:
    """Guess the values of the remaining parameters from their names and annotations."""
    spec = function.node.args
    for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if argument.arg not in names:
            names[argument.arg] = guesses.parameter(m, argument)


def unknown_names(m: Machine, function: Func) -> dict[str, Value]:
    """Return the names of a function for which no call was found, guessed from its parameters and annotations."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    names: dict[str, Value] = {}
    if function.bound is not None and positional:
        names[positional[0].arg] = function.bound
    _guess_the_rest(m, function, names)
    for extra, kind in ((spec.vararg, "tuple"), (spec.kwarg, "dict")):
        if extra is not None:
            names[extra.arg] = Seq(kind)
    return names


def compile_function(m: Machine, function: Value, node: ast.AST, arguments: Arguments | None) -> Value:
    """Return the value of `tf.function(f)` or `@tf.function`."""
    signature = arguments is not None and "input_signature" in arguments.named
    relaxed = arguments is not None and bool(
        {"reduce_retracing", "experimental_relax_shapes"} & set(arguments.named)
    )
    how = Compiled(node, m.frame.module, signature=signature, relaxed=relaxed)
    m.emit(FunctionMade(m.at(node), rebuilt=is_rebuilt(m)))
    if isinstance(function, Func):
        made = replace(function, compiled=how)
        m.functions[function.node] = made
        return made
    return Thing("compiled", "tf.function", node, m.frame.module, {"of": function, "compiled": how})


def is_rebuilt(m: Machine) -> bool:
    """Return whether the loops around need a new function each time, since they build models or take no steps."""
    steps = any(loop.strong or loop.weak or loop.inner_steps for loop in m.loops)
    return any(_builds_model(loop) for loop in m.loops) or (bool(m.loops) and not steps)


def _builds_model(loop: LoopState) -> bool:
    """Return whether each round builds its own model. A new optimizer does not count: one for all rounds would do."""
    return loop.builds_model or (loop.builds and guesses.binds_model(loop.node))


def as_tensors(value: Value) -> Value:
    """Convert the value that a Python body returns to the one that its tf.function returns."""
    if isinstance(value, Seq):
        if value.items is not None:
            return replace(value, items=tuple(as_tensors(item) for item in value.items))
        return replace(value, element=as_tensors(value.element))
    if isinstance(value, Py) and value.type != "none":
        return Tensor()
    if isinstance(value, Array):
        return Tensor(dtype=value.dtype)
    return replace(value, host=False, variable=False) if isinstance(value, Tensor) else value


def method(m: Machine, function: Func, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a method of a function object, such as a tf.function's `get_concrete_function`."""
    if name == "get_concrete_function" and function.compiled is not None:
        fixed = replace(function.compiled, signature=True)
        return replace(function, compiled=fixed)
    if name == "python_function":
        return replace(function, compiled=None)
    return UNKNOWN
