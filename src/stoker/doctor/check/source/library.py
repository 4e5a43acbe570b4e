"""Calls of library functions: what they return, what they read, what they run on the device."""

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
    keras_calls,
    loops,
    numpy_calls,
    pipelines,
    reads,
)
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import ArrayFeed
from stoker.doctor.check.source.tensors import dtype_name
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Api,
    Array,
    Dataset,
    Func,
    Py,
    Seq,
    Symbolic,
    Tensor,
    Thing,
    Value,
    holds_arrays,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_CONVERSIONS = frozenset(
    {"tf.convert_to_tensor", "tf.constant", "tf.cast", "keras.ops.convert_to_tensor", "tf.identity"}
)
_FROM_HOST = frozenset({"tf.convert_to_tensor", "keras.ops.convert_to_tensor"})
# Functions of these modules prepare data on the host.
_HOST_MODULES = ("tf.io.", "tf.strings.", "tf.image.", "tf.audio.")
_HOST_FUNCTIONS = frozenset({"tf.shape", "tf.rank", "tf.size"})
_NO_TENSOR = (
    "tf.config.",
    "tf.summary.",
    "tf.debugging.",
    "tf.train.",
    "tf.saved_model.",
    "tf.feature_column.",
    "tf.autograph.",
    "tf.test.",
    "tf.lite.",
    "tf.profiler.",
    "tf.estimator.",
    "tf.lookup.",
    "tf.compat.",
    "tf.types.",
    "tf.sysconfig.",
    "tf.version.",
    "tf.errors.",
    "tf.dtypes.",
    "tf.experimental.",
    "tf.io.gfile.",
    "tf.nest.",
    "tf.data.",
)
_DTYPES = tuple(
    f"tf.{name}."
    for name in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "string", "bool")
)
# Functions of `tf` itself that do not use the values of tensors.
_PLAIN = frozenset(
    f"tf.{name}"
    for name in (
        "executing_eagerly",
        "is_tensor",
        "get_logger",
        "inside_function",
        "init_scope",
        "device",
        "name_scope",
        "control_dependencies",
        "group",
        "no_op",
        "print",
        "load_op_library",
        "load_library",
        "type_spec_from_value",
        "custom_gradient",
        "recompute_grad",
        "as_dtype",
        "make_ndarray",
        "get_static_value",
        "grad_pass_through",
    )
)
# Functions whose arguments are all data. Others also take indices, axes or shapes, often made with NumPy.
_ON_DATA = ("tf.nn.", "tf.linalg.", "tf.reduce_", "tf.math.", "tf.losses.")
_ON_DATA_TOO = frozenset(
    f"tf.{name}"
    for name in (
        "abs",
        "add",
        "divide",
        "einsum",
        "exp",
        "matmul",
        "maximum",
        "minimum",
        "multiply",
        "pow",
        "sqrt",
        "square",
        "subtract",
        "tensordot",
    )
)
# Other functions of `tensorflow.compat.v1` that are the same in version 2.
_IN_BOTH_VERSIONS = frozenset(
    {
        "argmax",
        "cast",
        "clip_by_global_norm",
        "clip_by_value",
        "concat",
        "constant",
        "convert_to_tensor",
        "equal",
        "expand_dims",
        "gather",
        "identity",
        "one_hot",
        "ones",
        "ones_like",
        "reshape",
        "squeeze",
        "stack",
        "transpose",
        "where",
        "zeros",
        "zeros_like",
    }
)
# Arguments that say how to compute, not on what.
_HOW = frozenset(
    {"axis", "axes", "name", "strides", "padding", "dilations", "ksize", "depth_radius", "num_segments"}
)
# Functions that are evaluated once, while a graph is traced; the graph keeps the value.
_FROZEN = ("np.random.", "random.", "time.", "datetime.", "uuid.")
_CONTROL = frozenset(
    {"tf.while_loop", "tf.cond", "tf.map_fn", "tf.scan", "tf.vectorized_map", "tf.switch_case"}
)
_PY_FUNCTIONS = frozenset(
    {"tf.py_function", "tf.numpy_function", "tf1.py_func", "tf.py_func", "tf1.py_function"}
)
# Functions that call their argument repeatedly, from Python.
_MINIMIZERS = frozenset(
    f"scipy.optimize.{name}"
    for name in (
        "minimize",
        "minimize_scalar",
        "fmin",
        "fmin_bfgs",
        "fmin_cg",
        "fmin_l_bfgs_b",
        "fmin_ncg",
        "fmin_slsqp",
        "fmin_tnc",
        "basinhopping",
        "differential_evolution",
        "dual_annealing",
        "least_squares",
        "root",
    )
) | {"tfp.optimizer.lbfgs_minimize", "tfp.optimizer.bfgs_minimize", "tfp.optimizer.nelder_mead_minimize"}
_TQDM = frozenset({"tqdm.tqdm", "tqdm.trange", "tqdm.tqdm_notebook", "tqdm.auto.tqdm", "tqdm.auto.trange"})


Handler = Callable[["Machine", str, ast.Call, Arguments], Value]


def call(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a library function by its canonical name."""
    # A new dimension at the end of the shape does the same to a batch as to an element.
    at_end = name == "tf.expand_dims" and arguments.const(1, "axis") == -1
    m.note(f"{name}(axis=-1)" if at_end else name)
    if m.frame.hot and name.startswith(("builtins.print", "builtins.open", "wandb.", "logging.")):
        m.emit_call(name, node, arguments)
    if m.frame.traced is not None:
        _side_effects(m, name, node, arguments)
    handler = _EXACT.get(name)
    if handler is not None:
        return handler(m, name, node, arguments)
    root = name.split(".", 1)[0]
    by_root = _BY_ROOT.get(root)
    return by_root(m, name, node, arguments) if by_root is not None else _call_other(m, name, node, arguments)


def _side_effects(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> None:
    if name == "builtins.print":
        words = " ".join(str(v.const).lower() for v in arguments.by_position if isinstance(v, Py))
        # People print "Tracing ..." to notice retraces: it is meant to run only while tracing.
        if "trac" not in words and "compil" not in words:
            m.side_effect(node, "`print` runs")
    elif name.startswith(_FROZEN) and not name.startswith(("random.seed", "np.random.seed", "time.sleep")):
        m.side_effect(node, f"`{name}` is evaluated")
    elif name == "builtins.open" or name.startswith("logging."):
        m.side_effect(node, f"`{name.removeprefix('builtins.')}` runs")


def _tensorflow(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.emit_call(name, node, arguments)
    last = name.rsplit(".", 1)[-1]
    if "__" in name or name.startswith(_DTYPES):
        return Py("object")
    if pipelines.is_source(name):
        return pipelines.source(m, name, node, arguments)
    if name.startswith("tf.distribute."):
        return Thing("strategy", name, node) if last.endswith("Strategy") else UNKNOWN
    if name.startswith("tf.data.experimental."):
        return Thing("transform", name, node, about={"arguments": arguments})
    if name.startswith(("tf.random.Generator", "tf.random.get_global_generator")):
        return Thing("rng", name)
    if name in _PLAIN:
        return UNKNOWN
    if name.startswith(_NO_TENSOR) or last[:1].isupper():
        return Thing("object", name, node, about=arguments.by_name) if last[:1].isupper() else UNKNOWN
    if any(isinstance(value, Symbolic) for value in arguments.values):
        return Symbolic()
    if name.startswith(_HOST_MODULES) or name in _HOST_FUNCTIONS:
        return Tensor(
            host=True, dtype="string" if name.startswith("tf.strings.") and "to_" not in name else ""
        )
    m.work(strong=False)
    if name.startswith(_ON_DATA) or name in _ON_DATA_TOO:
        classes.feed(m, node, _data_of(m, arguments), f"is passed to `{name}`")
    return _compute(name, arguments)


def _version_1(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call an operation of `tensorflow.compat.v1`. In an eager program, many are the same as in version 2."""
    same = f"tf.{name.removeprefix('tf1.')}"
    known = same.startswith(_ON_DATA) or same in _ON_DATA_TOO or same.removeprefix("tf.") in _IN_BOTH_VERSIONS
    if m.frame.module.builds_graphs or not known:
        return _call_other(m, name, node, arguments)
    return call(m, same, node, arguments)


def _data_of(m: Machine, arguments: Arguments) -> Arguments:
    """Return the arguments that an operation computes on, without those that may be tensors."""
    named = {key: pair for key, pair in arguments.named.items() if key not in _HOW}
    return Arguments([pair for pair in arguments.positional if not _is_half_known(m, pair[0])], named)


def _is_half_known(m: Machine, expression: ast.expr) -> bool:
    """Return whether an expression combines an unknown, which may be a tensor, and an ndarray: `gradient * p`."""
    if not isinstance(expression, ast.BinOp):
        return False
    with m.quietly():
        return any(m.value(side) is UNKNOWN for side in (expression.left, expression.right))


def _compute(name: str, arguments: Arguments) -> Value:
    if name in ("tf.split", "tf.unstack", "tf.meshgrid", "tf.clip_by_global_norm"):
        return Seq("tuple", element=Tensor())
    ragged = any(isinstance(v, Tensor) and v.ragged for v in arguments.values)
    return Tensor(ragged=ragged, dtype=dtype_name(arguments.get(99, "dtype")))


def _conversion(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.emit_call(name, node, arguments)
    value = arguments.get(0, "value") or arguments.get(0, "x") or UNKNOWN
    dtype = dtype_name(arguments.get(1, "dtype"))
    if isinstance(value, Symbolic):
        return value
    array = holds_arrays(value)
    if (array or (name in _FROM_HOST and _is_open(value))) and not m.frame.graph:
        how = f"is converted by `{name}`"
        m.emit(ArrayFeed(m.at(node), how, arguments.expression(0, "value"), array))
    if isinstance(value, Tensor):
        if not value.host:
            m.work(strong=False)
        return replace(value, variable=False, dtype=dtype or value.dtype)
    return Tensor(dtype=dtype)


def _is_open(value: Value) -> bool:
    """Return whether the type of a value, or of all items of a list, is unknown.

    A tensor would not be converted again.
    """
    if isinstance(value, Seq) and value.kind in ("list", "tuple"):
        return bool(value.items) and all(map(_is_open, value.items or ()))
    return value is UNKNOWN


def _variable(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.emit_call(name, node, arguments)
    return Tensor(variable=True, dtype=dtype_name(arguments.get(99, "dtype")))


def _function(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    function = arguments.get(0, "func")
    if function is None:
        return Thing("compiler", name, node, about={"arguments": arguments})
    return functions.compile_function(m, function, node, arguments)


def _maker(type_: str) -> Handler:
    """Return a handler for calls that make a library object of this type."""
    return lambda m, name, node, arguments: Thing(type_, name, node)


def _control(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.work(strong=False)
    for value in arguments.values:
        if isinstance(value, Func):
            names = functions.unknown_names(m, value)
            names = {k: Tensor() if v is UNKNOWN else v for k, v in names.items()}
            functions.follow(m, value, names, graph=m.frame.graph, traced=m.frame.traced)
    return Tensor() if name != "tf.while_loop" else Seq("tuple", element=Tensor())


def _py_function(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.emit_call(name, node, arguments)
    function = arguments.get(0, "func")
    if isinstance(function, Func):
        names = functions.unknown_names(m, function)
        traced, m.frame.traced = m.frame.traced, None
        # It runs in Python on purpose, so reads inside it are not stalls.
        with m.running(hot=False, repeated=False, graph=False):
            functions.follow(m, function, names, graph=False, traced=None)
        m.frame.traced = traced
    return Tensor(host=True)


def _minimize(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Run an objective passed to an optimizer such as SciPy's: each evaluation is a train step."""
    given = [v for v in (arguments.get(0, "fun"), arguments.get(99, "jac")) if isinstance(v, Func)]
    host = name.startswith("scipy.")
    passed = Arguments.at(node, Array() if host else Tensor())

    def body() -> None:
        for function in given:
            functions.call_function(m, function, node, passed)
        m.work(strong=True)
        m.apply_gradients()

    if given:
        loops.run(m, node, loops.Walk(UNKNOWN, counts=True), body)
    return Thing("object", name)


def _to_numpy(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    for value in arguments.by_position:
        reads.note_deep_read(m, node, value, f"is read with `{name.rsplit('.', 1)[-1]}`")
    return Array()


def _partial(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if not arguments.positional:
        return UNKNOWN
    function = arguments.positional[0][1]
    rest = Arguments(arguments.positional[1:], arguments.named)
    if isinstance(function, Api) and function.name == "tf.function":
        return Thing("compiler", name, node, about={"arguments": rest})
    if isinstance(function, Func) and not arguments.named:
        return replace(function, partial=rest.by_position)
    return function if isinstance(function, Func) else UNKNOWN


def _repeat(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Return what `itertools.cycle(dataset)` and the like walk over: their argument."""
    over = arguments.get(0, "iterable") or UNKNOWN
    return Seq("generator", element=loops.walk(over).element, source=over)


def _progress(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    over = arguments.get(0, "iterable") or UNKNOWN
    if name.endswith("trange"):
        over = builtin_calls.range_of(arguments)
    return Thing("progress", name, node, about={"over": over})


def _call_other(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    last = name.rsplit(".", 1)[-1]
    if name in _TQDM or last in ("tqdm", "trange"):
        return _progress(m, name, node, arguments)
    if name.startswith(reads.NUMBERS):
        reads.note_arguments(m, arguments, f"is passed to `{name}`")
        return Py(
            "float",
            varies=any(isinstance(v, Tensor) or (isinstance(v, Py) and v.varies) for v in arguments.values),
        )
    if name in reads.TRACKERS or (name.startswith(("logging.", "absl.logging.")) and last in reads.LOGGING):
        reads.note_arguments(m, arguments, "is logged")
        return UNKNOWN
    if name.startswith(("random.", "time.")):
        return Py("float" if last in ("random", "uniform", "time", "perf_counter") else "object", varies=True)
    if name.startswith(("transformers.TF", "tensorflow_hub.load", "tensorflow_hub.KerasLayer")):
        return Thing("model", name, node)
    if last in ("collections.deque", "deque", "defaultdict"):
        return Seq("list", items=())
    if last[:1].isupper():
        return Thing("foreign", name, node)
    if guesses.is_pass(m, last.lower()):
        m.steps_inside()
    return UNKNOWN


def _tfds(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    if name == "tfds.as_numpy":
        value = arguments.get(0, "dataset")
        if isinstance(value, Dataset):
            return Seq("generator", element=pipelines.convert_to_arrays(value.element), source=value)
        return UNKNOWN
    if name != "tfds.load" and not name.endswith("as_dataset"):
        return UNKNOWN
    pair = arguments.const(99, "as_supervised") is True
    element: Value = (
        Seq("tuple", items=(pipelines.HOST, pipelines.HOST)) if pair else Seq("dict", element=pipelines.HOST)
    )
    made: Value = Dataset(source=name, element=element, prefetched=True)
    split = arguments.get(1, "split")
    if isinstance(split, Seq) and split.items is not None:
        made = Seq(
            "list", items=tuple(Dataset(source=name, element=element, prefetched=True) for _ in split.items)
        )
    elif split is None or (isinstance(split, Py) and split.type == "none"):
        made = Seq("dict", element=made)
    return Seq("tuple", items=(made, UNKNOWN)) if arguments.const(99, "with_info") is True else made


_EXACT: dict[str, Handler] = {
    **dict.fromkeys(_CONVERSIONS, _conversion),
    **dict.fromkeys(_CONTROL, _control),
    **dict.fromkeys(_PY_FUNCTIONS, _py_function),
    **dict.fromkeys(
        (
            "keras.ops.convert_to_numpy",
            "keras.backend.get_value",
            "keras.backend.eval",
            "keras.backend.batch_get_value",
        ),
        _to_numpy,
    ),
    "tf.Variable": _variable,
    "tf.function": _function,
    "tf1.function": _function,
    **dict.fromkeys(("tf.GradientTape", "tf1.GradientTape"), _maker("tape")),
    **dict.fromkeys(
        ("tf1.Session", "tf1.InteractiveSession", "tf1.train.MonitoredTrainingSession"), _maker("session")
    ),
    **dict.fromkeys(("tf.Graph", "tf1.Graph"), _maker("graphs")),
    "functools.partial": _partial,
    **dict.fromkeys(("itertools.cycle", "itertools.islice"), _repeat),
    "argparse.ArgumentParser": _maker("parser"),
    **dict.fromkeys(_MINIMIZERS, _minimize),
}
_BY_ROOT: dict[str, Handler] = {
    "builtins": builtin_calls.call,
    "np": numpy_calls.call,
    "tf": _tensorflow,
    "tf1": _version_1,
    "tnp": lambda m, name, node, arguments: Tensor(),
    "keras": keras_calls.call,
    "tfds": _tfds,
}
