"""tf.data pipelines: their sources, transformations and mapped functions."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.check.source import functions
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import Consumed, Extended
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Api,
    Array,
    ChainStage,
    Dataset,
    Func,
    Method,
    Py,
    Seq,
    Tensor,
    Thing,
    Value,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

STAGES = frozenset(
    {
        "map",
        "batch",
        "shuffle",
        "prefetch",
        "cache",
        "repeat",
        "take",
        "skip",
        "filter",
        "interleave",
        "flat_map",
        "padded_batch",
        "ragged_batch",
        "window",
        "unbatch",
        "enumerate",
        "with_options",
        "apply",
        "concatenate",
        "shard",
        "snapshot",
        "bucket_by_sequence_length",
        "ignore_errors",
        "rebatch",
        "group_by_window",
        "scan",
        "parallel_interleave",
        "take_while",
        "unique",
        "rejection_resample",
    }
)
# Sources that prefetch by themselves.
_PREFETCHED = frozenset(
    {
        "keras.preprocessing.image_dataset_from_directory",
        "keras.preprocessing.text_dataset_from_directory",
        "keras.utils.audio_dataset_from_directory",
        "keras.utils.timeseries_dataset_from_array",
        "keras.preprocessing.timeseries_dataset_from_array",
        "keras.preprocessing.image.image_dataset_from_directory",
        "tf.data.experimental.make_csv_dataset",
        "tf.data.experimental.make_batched_features_dataset",
    }
)
_WITH_FUNCTION = frozenset(
    {"map", "filter", "interleave", "flat_map", "scan", "group_by_window", "take_while"}
)
# The position of `num_parallel_calls` among the arguments.
_PARALLEL = {"map": 1, "interleave": 3, "batch": 2}
# Sources that combine pipelines.
_JOINING = frozenset({"zip", "choose_from_datasets", "sample_from_datasets"})
HOST = Tensor(host=True)


def is_source(name: str) -> bool:
    """Return whether this library function returns a pipeline."""
    last = name.rsplit(".", 1)[-1]
    return (
        (name.startswith("tf.data.") and (last.endswith("Dataset") or ".Dataset." in name))
        or name in _PREFETCHED
        or (name.startswith("tf.data.experimental.make_") and last.endswith("dataset"))
    )


def source(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a function that makes a pipeline."""
    last = name.rsplit(".", 1)[-1]
    parts = _parts(arguments) if last in _JOINING else ()
    stages = (ChainStage(last, node, m.frame.module),) if parts else ()
    made = Dataset(name, stages, _source_element(last, arguments), name in _PREFETCHED, parts=parts)
    m.emit_call(name, node, arguments, made)
    for part in parts:
        m.emit(Extended(m.at(node), made, part))
    both = name in _PREFETCHED and arguments.const(99, "subset") == "both"
    return Seq("tuple", items=(made, made)) if both else made


def _parts(arguments: Arguments) -> tuple[Dataset, ...]:
    given = arguments.get(0, "datasets")
    values = given.items or () if isinstance(given, Seq) else arguments.values
    return tuple(value for value in values if isinstance(value, Dataset))


def _source_element(last: str, arguments: Arguments) -> Value:
    if last in ("from_tensor_slices", "from_tensors") and arguments.positional:
        return _move_to_host(arguments.positional[0][1])
    if last == "zip":
        given = arguments.get(0, "datasets")
        parts = given.items if isinstance(given, Seq) and given.items is not None else arguments.values
        return Seq("tuple", items=tuple(p.element if isinstance(p, Dataset) else HOST for p in parts))
    if last == "image_dataset_from_directory":
        return Seq("tuple", items=(Tensor(host=True, pixels="image files"), HOST))
    if "dataset_from_directory" in last or last == "timeseries_dataset_from_array":
        return Seq("tuple", items=(HOST, HOST))
    return HOST


def _move_to_host(value: Value) -> Value:
    if isinstance(value, Seq):
        if value.items is not None and (value.kind in ("tuple", "dict")):
            return replace(value, items=tuple(_move_to_host(item) for item in value.items))
        strings = isinstance(value.element, Py) and value.element.type == "str"
        strings = strings or (
            bool(value.items) and all(isinstance(i, Py) and i.type == "str" for i in value.items or ())
        )
        return Tensor(host=True, dtype="string" if strings else "")
    if isinstance(value, Array):
        return Tensor(host=True, dtype=value.dtype, pixels=value.pixels)
    return HOST


def method(m: Machine, owner: Dataset, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a method of a pipeline."""
    if name == "apply":
        return _apply(m, owner, node, arguments)
    if name in STAGES:
        return _stage(m, owner, name, node, arguments)
    if name == "as_numpy_iterator":
        return Seq("generator", element=convert_to_arrays(owner.element), source=owner)
    if name in ("make_one_shot_iterator", "make_initializable_iterator", "__iter__"):
        return Thing("iterator", about={"dataset": owner})
    if name in ("get_single_element",):
        return owner.element
    if name == "reduce":
        return Tensor()
    if name in ("cardinality", "__len__"):
        return HOST
    return UNKNOWN


def convert_to_arrays(value: Value) -> Value:
    """Convert an element's tensors to ndarrays, as `as_numpy_iterator` does."""
    if isinstance(value, Seq) and value.items is not None:
        return replace(value, items=tuple(convert_to_arrays(item) for item in value.items))
    return Array()


def _stage(m: Machine, owner: Dataset, name: str, node: ast.Call, arguments: Arguments) -> Value:
    function = arguments.get(0, "map_func") if name in _WITH_FUNCTION else None
    if function is None and name in _WITH_FUNCTION:
        function = arguments.get(0, "predicate")
    effects, element = frozenset[str](), owner.element
    if function is not None:
        effects, result = _follow_mapped(m, function, owner, inner=name in ("interleave", "flat_map"))
        element = result if name == "map" else element
        if isinstance(result, Dataset) and name in ("interleave", "flat_map"):
            element = result.element
    if name in ("bucket_by_sequence_length", "ragged_batch") or (
        name == "padded_batch" and not _pads_to_fixed(arguments)
    ):
        element = _make_ragged(element)
    elif name == "enumerate":
        element = Seq("tuple", items=(HOST, element))
    stage = ChainStage(
        name,
        node,
        m.frame.module,
        effects,
        _is_parallel(name, arguments),
        arguments.positional[0][1] if arguments.positional else _size(arguments),
        frozenset(arguments.named),
        function or UNKNOWN,
    )
    made = owner.with_stage(stage, element)
    m.emit(Extended(m.at(node), made, owner))
    other = arguments.get(0, "dataset")
    if name == "concatenate" and isinstance(other, Dataset):
        m.emit(Extended(m.at(node), made, other))
    return made


def _size(arguments: Arguments) -> Value:
    for name in ("batch_size", "count", "buffer_size"):
        if name in arguments.named:
            return arguments.named[name][1]
    return UNKNOWN


def _is_parallel(name: str, arguments: Arguments) -> bool:
    position = _PARALLEL.get(name)
    if position is None:
        return False
    given = arguments.get(position, "num_parallel_calls")
    if arguments.open:
        return True
    # An explicit 1 is a decision, not an oversight.
    return given is not None and not (isinstance(given, Py) and given.type == "none")


def _pads_to_fixed(arguments: Arguments) -> bool:
    """Return whether every batch is padded to the same length, as by `padded_shapes=[128]` but not by None or -1."""
    shapes = arguments.expression(1, "padded_shapes")
    if shapes is None:
        return False
    parts = list(ast.walk(shapes))
    opened = any((isinstance(p, ast.Constant) and p.value is None) or isinstance(p, ast.USub) for p in parts)
    return not opened and any(isinstance(p, (ast.Constant, ast.Name)) for p in parts)


def _make_ragged(element: Value) -> Value:
    if isinstance(element, Seq) and element.items is not None:
        return replace(element, items=tuple(_make_ragged(item) for item in element.items))
    return Tensor(host=True, ragged=True)


def _follow_mapped(
    m: Machine, function: Value, owner: Dataset, *, inner: bool
) -> tuple[frozenset[str], Value]:
    """Follow a mapped function. Return its effects and its value."""
    if isinstance(function, Func):
        names = functions.unknown_names(m, function)
        _spread(function, names, owner.element)
        mapped, m.frame.mapped = m.frame.mapped, True
        with m.running(hot=False, repeated=False):
            summary = functions.follow(m, function, names, graph=True, traced=None)
        m.frame.mapped = mapped
        value = summary.value
        if isinstance(value, Dataset) and inner:
            value = replace(value, inner=True)
        return summary.effects, _on_host(value)
    if isinstance(function, Api):
        return frozenset({function.name}), HOST
    if isinstance(function, (Thing, Method)):
        thing = function if isinstance(function, Thing) else function.receiver
        if isinstance(thing, Thing) and thing.about.get("random"):
            return frozenset({"+random"}), HOST
        table = isinstance(thing, Thing) and thing.name.startswith("tf.lookup.")
        return frozenset({"tf.lookup"} if table else {"?"}), HOST
    return frozenset({"?"}), HOST


def _on_host(value: Value) -> Value:
    """Mark a mapped function's value as being on the host: pipelines run there, so reading it waits for no device."""
    if isinstance(value, Seq) and value.items is not None:
        return replace(value, items=tuple(_on_host(item) for item in value.items))
    if isinstance(value, Seq):
        return replace(value, element=_on_host(value.element))
    if isinstance(value, Tensor):
        return replace(value, host=True, variable=False)
    return HOST if isinstance(value, (Py, Array)) else value


def _spread(function: Func, names: dict[str, Value], element: Value) -> None:
    spec = function.node.args
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    if function.bound is not None:
        parameters = parameters[1:]
    parameters = parameters[len(function.partial) :]
    items = element.items if isinstance(element, Seq) and element.kind == "tuple" else None
    for position, name in enumerate(parameters):
        if items is not None and len(parameters) > 1:
            names[name] = items[position] if position < len(items) else names[name]
        elif position == 0 and element is not UNKNOWN:
            names[name] = element
        elif (
            position > 0
            and isinstance(names[name], type(UNKNOWN))
            and len(parameters) - len(spec.defaults) > position
        ):
            names[name] = HOST


def _apply(m: Machine, owner: Dataset, node: ast.Call, arguments: Arguments) -> Value:
    function = arguments.get(0, "transformation_func")
    if isinstance(function, Func):
        return functions.call_function(m, function, node, Arguments.at(node, owner))
    if isinstance(function, Thing) and function.type == "transform":
        last = function.name.rsplit(".", 1)[-1]
        name = {
            "prefetch_to_device": "prefetch",
            "shuffle_and_repeat": "shuffle",
            "map_and_batch": "batch",
        }.get(last, last)
        if name in STAGES:
            made = owner.with_stage(ChainStage(name, node, m.frame.module, parallel=True))
            m.emit(Extended(m.at(node), made, owner))
            return made
    return owner


def consume(m: Machine, node: ast.AST, value: Value | None, how: str) -> None:
    """Note that a pipeline is iterated."""
    if isinstance(value, Dataset):
        m.emit(Consumed(m.at(node), value, how))
