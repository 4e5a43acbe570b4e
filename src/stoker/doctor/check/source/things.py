"""Library objects: calls of models and metrics, and methods of models, optimizers, tapes, strategies ..."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.check.source import (
    builtin_calls,
    classes,
    functions,
    guesses,
    numpy_calls,
    options,
    pipelines,
    reads,
)
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import CompiledCall, TensorRead
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Array,
    Dataset,
    Func,
    Instance,
    Py,
    Seq,
    Symbolic,
    Tensor,
    Thing,
    Value,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine


def call_thing(m: Machine, thing: Thing, node: ast.Call, arguments: Arguments) -> Value:
    """Call a library object."""
    if thing.type == "compiler":
        function = arguments.get(0, "func")
        return functions.compile_function(m, function or UNKNOWN, node, thing.about["arguments"])
    if thing.type == "compiled":
        return _call_compiled(m, thing, node, arguments)
    if thing.type in ("model", "layer"):
        return _call_model(m, thing, node, arguments)
    if thing.type in ("loss", "metric", "schedule"):
        if thing.type != "schedule":
            m.work(strong=False)
        return Tensor()
    if thing.type == "foreign":
        return guesses.call(m, node, arguments)
    m.note("?")
    return UNKNOWN


def _call_compiled(m: Machine, thing: Thing, node: ast.Call, arguments: Arguments) -> Value:
    m.note("?")
    if not m.frame.graph:
        m.emit(CompiledCall(m.at(node), thing.about["compiled"], thing.about["of"], arguments.pairs))
        m.work(strong=True)
    of = thing.about["of"]
    if isinstance(of, (Thing, Instance)):
        with m.running(hot=m.frame.hot, repeated=m.frame.repeated, graph=True):
            m.call(of, node, arguments)
    return Tensor()


def _call_model(m: Machine, thing: Thing, node: ast.Call, arguments: Arguments) -> Value:
    if any(_is_symbolic(value) for value in arguments.values):
        first = next(v for v in arguments.values if _is_symbolic(v))
        scaled = isinstance(first, Symbolic) and first.scaled
        return Symbolic(thing, scaled or bool(thing.about.get("scaling")) or thing.type == "model")
    if thing.about.get("random"):
        m.note("+random")
    m.note(thing.name)
    m.work(strong=not (thing.about.get("random") or thing.about.get("scaling")))
    classes.feed(m, node, arguments, "is passed to a model")
    result = thing.about.get("result")
    if isinstance(result, Seq) and result.items is not None:
        return Seq("list", items=tuple(Tensor() for _ in result.items))
    return Tensor()


def _is_symbolic(value: Value) -> bool:
    if isinstance(value, Seq):
        return any(isinstance(item, Symbolic) for item in value.items or (value.element,))
    return isinstance(value, Symbolic)


def method(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a method of a library object."""
    m.note(f"{thing.type}.{name}")
    if thing.type in ("model", "optimizer", "session", "layer"):
        fits = bool(m.loops and m.loops[-1].fits)
        m.emit_call(f"{thing.type}.{name}", node, arguments, thing, loop_fits=fits)
    handler = _METHODS.get(thing.type)
    return handler(m, thing, name, node, arguments) if handler is not None else UNKNOWN


def _model(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name in ("fit", "fit_generator"):
        return _fit(m, thing, node, arguments)
    if name in ("predict", "evaluate", "predict_generator"):
        m.work(strong=True)
        how = "predict" if name.startswith("predict") else "evaluate"
        pipelines.consume(m, node, arguments.get(0, "x"), how)
        return Array() if how == "predict" else Py("object", varies=True)
    if name == "predict_on_batch":
        # It takes and returns arrays, and is itself the repair of `predict` in a loop.
        m.work(strong=True)
        return Array()
    if name in ("train_on_batch", "test_on_batch"):
        m.work(strong=True)
        classes.feed(m, node, arguments, f"is passed to `{name}`")
        return Py("object", varies=True)
    if name == "get_weights":
        if not m.frame.graph:
            m.emit(TensorRead(m.at(node), "(all the weights) is read with .get_weights()"))
        return Seq("list", element=Array())
    if name == "add" and arguments.positional:
        thing.about.setdefault("layer_list", []).append(arguments.positional[0][1])
        return UNKNOWN
    if name == "compile":
        thing.about["compiled_by"] = arguments
        return UNKNOWN
    if name in ("call", "__call__"):
        return _call_model(m, thing, node, arguments)
    if name in ("from_pretrained", "load"):
        return thing
    if name in ("train_step", "test_step", "compute_loss", "encode", "decode", "generate"):
        m.work(strong=True)
        return Tensor() if name != "train_step" else Seq("dict", element=Tensor())
    return UNKNOWN


def _fit(m: Machine, thing: Thing, node: ast.Call, arguments: Arguments) -> Value:
    if _fits_a_sample(m, arguments):
        # `fit` on data that the loop keeps picking is one step, as in replay loops.
        m.work(strong=True)
    else:
        m.note("+fits")
        m.note("+steps")
        if m.loops:
            m.loops[-1].inner_steps = m.loops[-1].fits = True
    pipelines.consume(m, node, arguments.get(0, "x"), "fit")
    pipelines.consume(m, node, arguments.get(99, "validation_data"), "validation")
    return Thing("history")


def _fits_a_sample(m: Machine, arguments: Arguments) -> bool:
    """Return whether `fit` runs one epoch over data that the loop around it, in the same function, keeps changing."""
    epochs = arguments.get(99, "epochs")
    if not m.frame.loops or not (epochs is None or (isinstance(epochs, Py) and epochs.const == 1)):
        return False
    data = arguments.expression(0, "x")
    loop = m.frame.loops[-1]
    if data is None or isinstance(arguments.get(0, "x"), Dataset) or (m.loops and m.loops[-1].builds):
        return False
    bound = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(data))


def _optimizer(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name in ("apply_gradients", "apply", "minimize"):
        m.work(strong=True)
        m.note("+applies")
        m.apply_gradients()
        return UNKNOWN
    if name in ("get_scaled_loss", "scale_loss"):
        return Tensor()
    if name in ("get_unscaled_gradients", "compute_gradients"):
        return Seq("list", element=Tensor())
    return UNKNOWN


def _metric(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name == "result":
        return Tensor()
    m.work(strong=False)
    return UNKNOWN


def _tape(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name not in ("gradient", "jacobian", "batch_jacobian"):
        return UNKNOWN
    m.work(strong=True)
    m.note("tape.gradient")
    target = arguments.expression(0, "target")
    if isinstance(target, ast.Name) and m.frame.scope.find(target.id) is UNKNOWN:
        # Only a tensor has a gradient.
        m.frame.scope.names[target.id] = Tensor()
    sources = arguments.get(1, "sources")
    if not m.tapes and _are_variables(sources):
        # Gradients by all of a model's weights are taken to change these, even if without an optimizer.
        m.apply_gradients()
    return Tensor() if isinstance(sources, Tensor) else Seq("list", element=Tensor())


def _are_variables(sources: Value | None) -> bool:
    return (
        isinstance(sources, Seq)
        and sources.items is None
        and isinstance(sources.element, Tensor)
        and sources.element.variable
    )


def _strategy(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name in ("run", "experimental_run_v2", "call_for_each_replica"):
        return _run_on_replicas(m, thing, node, arguments)
    if name == "experimental_distribute_dataset":
        given = arguments.get(0, "dataset")
        pipelines.consume(m, node, given, "distribute")
        return replace(given, distributed=True) if isinstance(given, Dataset) else UNKNOWN
    if name in ("distribute_datasets_from_function", "experimental_distribute_datasets_from_function"):
        function = arguments.get(0, "dataset_fn")
        result = (
            functions.follow(
                m, function, functions.unknown_names(m, function), graph=False, traced=None
            ).value
            if (isinstance(function, Func))
            else UNKNOWN
        )
        pipelines.consume(m, node, result, "distribute")
        return replace(result, distributed=True) if isinstance(result, Dataset) else UNKNOWN
    if name in ("reduce", "gather"):
        m.work(strong=False)
        return Tensor()
    if name in ("experimental_local_results",):
        return Seq("tuple", element=Tensor())
    return UNKNOWN


def _run_on_replicas(m: Machine, thing: Thing, node: ast.Call, arguments: Arguments) -> Value:
    """Run `strategy.run(step, args=(batch,))`: a mirrored strategy runs it eagerly unless the caller is compiled."""
    function = arguments.get(0, "fn") or UNKNOWN
    m.work(strong=True)
    given = arguments.get(1, "args")
    values = given.items if isinstance(given, Seq) and given.items is not None else ()
    expression = arguments.expression(1, "args") or node
    passed = Arguments.at(expression, *values)
    if isinstance(function, Func):
        eager = thing.name.endswith(("MirroredStrategy", "OneDeviceStrategy")) and function.compiled is None
        inside = m.frame.graph or not eager
        if function.compiled is None:
            with m.running(hot=m.frame.hot, repeated=m.frame.repeated, graph=inside):
                return functions.as_tensors(functions.call_function(m, function, node, passed))
        return functions.call_function(m, function, node, passed)
    m.note("?")
    return Tensor()


def _session(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name == "run":
        m.work(strong=True)
        fetched = arguments.get(0, "fetches")
        if isinstance(fetched, Seq) and fetched.items is not None:
            return Seq("list", items=tuple(Array() for _ in fetched.items))
        return Array()
    if name in ("as_default", "__enter__"):
        return thing
    return UNKNOWN


def _iterator(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name in ("get_next", "next", "__next__", "get_next_as_optional"):
        return builtin_calls.next_of(m, node, thing)
    return UNKNOWN


def _progress(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name in reads.SINKS:
        reads.note_arguments(m, arguments, "is shown by the progress bar")
    if name == "__enter__":
        return thing
    return UNKNOWN


def _progbar(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name in ("update", "add"):
        reads.note_arguments(m, arguments, "is shown by the progress bar")
    return UNKNOWN


def _rng(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.note("tf.random.Generator")
    return Tensor()


def _nprng(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.note(f"np.random.{name}")
    return numpy_calls.generate(name, arguments)


def _graphs(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    return Thing("graph", thing.name) if name == "as_default" else UNKNOWN


def _datagen(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name.startswith("flow"):
        pair = Seq("tuple", items=(Array(), Array()))
        return Seq("generator", element=pair)
    return UNKNOWN


def _super(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    instance = thing.about["instance"]
    for one in list(classes.ancestry(instance.info))[1:]:
        found = one.members.get(name)
        if isinstance(found, Func):
            return functions.call_function(m, replace(found, bound=instance), node, arguments)
    if name in ("train_step", "test_step"):
        return Seq("dict", element=Tensor())
    if name in ("call", "__call__"):
        m.work(strong=True)
        return Tensor()
    return UNKNOWN


def _foreign(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name in reads.SINKS or (name in reads.LOGGING and "log" in thing.name.lower()):
        reads.note_arguments(m, arguments, "is logged")
        return UNKNOWN
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return guesses.method(m, name, receiver, node, arguments)


def _object(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if thing.name.startswith(("tf.TensorArray", "tf.lookup", "tf.queue")):
        return Tensor() if name in ("stack", "read", "lookup", "concat", "dequeue") else thing
    return UNKNOWN


_METHODS: dict[str, Callable[[Machine, Thing, str, ast.Call, Arguments], Value]] = {
    "model": _model,
    "layer": _model,
    "optimizer": _optimizer,
    "metric": _metric,
    "tape": _tape,
    "strategy": _strategy,
    "session": _session,
    "iterator": _iterator,
    "progress": _progress,
    "progbar": _progbar,
    "rng": _rng,
    "nprng": _nprng,
    "graphs": _graphs,
    "datagen": _datagen,
    "super": _super,
    "foreign": _foreign,
    "object": _object,
    "parser": options.method,
}
