"""Eager ops as TensorFlow reports them: watched as they run, run again, and built into graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from stoker.tf_internals.types import DType, ProtoMessage, Tensor

# The names and values of an op's attributes, alternating, as op callbacks report them and `run_op` takes them.
Attributes: TypeAlias = tuple[object, ...]
# The shape of each input of a compiled function; None if it is unknown or the input is a handle.
Shapes: TypeAlias = tuple[tuple[int, ...] | None, ...]
OpWatcher: TypeAlias = Callable[[str, Sequence[Tensor], Attributes, Sequence[Tensor]], None]


def watch_ops(watcher: OpWatcher) -> Callable[[], None] | None:
    """Call `watcher(type, inputs, attributes, outputs)` after every eager op of this thread.

    A call of a compiled function comes as an op whose type is the function's name. Return a function that ends the
    watch, from any thread; None if something else already watches ops, which must not be disturbed.
    """
    from tensorflow.python.eager import context, execute
    from tensorflow.python.framework import op_callbacks

    if context.context().op_callbacks:
        return None

    def callback(
        op_type: str | bytes,
        inputs: Sequence[Tensor],
        attributes: Attributes | None,
        outputs: Sequence[Tensor] | None,
        op_name: str | None = None,
        graph: object = None,
    ) -> None:
        if stopped:
            context.context().remove_op_callback(callback)
        elif graph is None:
            name = op_type.decode() if isinstance(op_type, bytes) else op_type
            watcher(name, tuple(inputs), _drop_unset(attributes or ()), tuple(outputs or ()))

    run_before = execute.execute
    stopped: list[bool] = []
    op_callbacks.add_op_callback(callback)

    def stop() -> None:
        # Take it from the context itself: the module's function replaces `execute` by what it considers the original.
        if callback in context.context().op_callbacks:
            context.context().remove_op_callback(callback)
        else:
            # Callbacks belong to a thread: this one goes at the next op of its thread.
            stopped.append(True)
        execute.execute = run_before

    return stop


def _drop_unset(attributes: Attributes) -> Attributes:
    """Return the attributes without those that are None, which take their defaults."""
    pairs = zip(attributes[::2], attributes[1::2], strict=True)
    return tuple(part for pair in pairs if pair[1] is not None for part in pair)


def run_op(name: str, inputs: Sequence[Tensor], attributes: Attributes, outputs: int) -> list[Tensor]:
    """Run an op eagerly, or a compiled function by its name."""
    from tensorflow.python.eager import context, execute

    return list(execute.quick_execute(name, outputs, list(inputs), attributes, context.context()) or ())


def add_op(
    name: str, inputs: Sequence[Tensor], attributes: Attributes, outputs: Sequence[Tensor]
) -> list[Tensor]:
    """Add an op that ran eagerly to the graph that is being traced; `outputs` are its eager outputs."""
    from tensorflow.python.framework import op_def_library, op_def_registry, ops

    definition = op_def_registry.get(name)
    if definition is None:
        made = _add_call(name, inputs, outputs)
    else:
        given = _attribute_values(attributes)
        made = op_def_library.apply_op(name, **_arguments(definition, inputs, given))
    if isinstance(made, ops.Operation):
        return []
    parts = made if isinstance(made, (list, tuple)) else [made]
    return [t for part in parts for t in (part if isinstance(part, (list, tuple)) else [part])]


def _add_call(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> object:
    """Call a compiled function that the eager runtime knows by name."""
    from tensorflow.core.framework import attr_value_pb2
    from tensorflow.python.framework import op_def_library

    return op_def_library.apply_op(
        "StatefulPartitionedCall",
        args=list(inputs),
        Tout=[tensor.dtype for tensor in outputs],
        f=attr_value_pb2.NameAttrList(name=name),
        config="",
        config_proto="",
        executor_type="",
    )


def _attribute_values(attributes: Attributes) -> dict[str, object]:
    names, values = attributes[::2], attributes[1::2]
    return {
        name.decode() if isinstance(name, bytes) else str(name): value
        for name, value in zip(names, values, strict=True)
    }


def _arguments(
    definition: ProtoMessage, inputs: Sequence[Tensor], given: dict[str, object]
) -> dict[str, object]:
    """Return an op's inputs and attributes by name, without those that TensorFlow infers from the inputs."""
    from tensorflow.python.framework import dtypes

    made: dict[str, object] = {}
    inferred: set[str] = set()
    left = list(inputs)
    for position, argument in enumerate(definition.input_arg):
        inferred |= {argument.type_attr, argument.number_attr, argument.type_list_attr}
        if argument.number_attr or argument.type_list_attr:
            # A list does not tell its length here: it takes all inputs that the other arguments leave.
            behind = len(definition.input_arg) - position - 1
            count = _list_length(argument, given, len(left) - behind)
            made[argument.name], left = left[:count], left[count:]
        else:
            made[argument.name] = left.pop(0)
    for attribute in definition.attr:
        if attribute.name in inferred:
            continue
        # None stands for the default.
        value = given.get(attribute.name)
        if value is None:
            pass
        elif attribute.type == "type":
            value = dtypes.as_dtype(value)
        elif attribute.type == "list(type)":
            value = [dtypes.as_dtype(one) for one in value]  # type: ignore[attr-defined]
        made[attribute.name] = value
    return made


def _list_length(argument: ProtoMessage, given: dict[str, object], rest: int) -> int:
    if argument.number_attr in given:
        return int(given[argument.number_attr])  # type: ignore[call-overload, no-any-return]
    types = given.get(argument.type_list_attr)
    return len(types) if isinstance(types, (list, tuple)) else rest


def compiled_function(name: str) -> ProtoMessage | None:
    """Return the definition of a compiled function that the eager runtime knows; None if it knows none of that name."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    try:
        return context.context().get_function_def(name)
    except tf.errors.NotFoundError:
        return None


def compiled_function_names() -> list[str]:
    """Return the names of all functions that the eager runtime knows."""
    from tensorflow.python.eager import context

    names = context.context().list_function_names()
    return sorted(name.decode() if isinstance(name, bytes) else name for name in names)


def input_shapes(definition: ProtoMessage) -> Shapes:
    """Return the shapes that a compiled function was traced for, input by input."""
    return tuple(
        _input_shape(definition.arg_attr[n].attr) for n in range(len(definition.signature.input_arg))
    )


def _input_shape(attributes: Mapping[str, ProtoMessage]) -> tuple[int, ...] | None:
    shapes = list(attributes["_output_shapes"].list.shape) if "_output_shapes" in attributes else []
    if len(shapes) != 1 or shapes[0].unknown_rank:
        return None
    sizes = tuple(int(dimension.size) for dimension in shapes[0].dim)
    return None if any(size < 0 for size in sizes) else sizes


def is_compiled_by_xla(definition: ProtoMessage) -> bool:
    """Return whether XLA compiles a function, once for each shape."""
    return "_XlaMustCompile" in definition.attr and bool(definition.attr["_XlaMustCompile"].b)


def called_functions(definition: ProtoMessage) -> list[str]:
    """Return the names of the functions that a compiled function calls."""
    attributes = [attribute for node in definition.node_def for attribute in node.attr.values()]
    single = [one.func.name for one in attributes if one.WhichOneof("value") == "func"]
    listed = [func.name for one in attributes for func in one.list.func]
    return [*single, *listed]


def gather_functions(
    names: Iterable[str], known: Mapping[str, ProtoMessage] | None = None
) -> dict[str, ProtoMessage]:
    """Return the compiled functions of these names and all that they call, in addition to those that are known."""
    found = dict(known or {})
    pending = list(names)
    while pending:
        name = pending.pop()
        definition = None if name in found else compiled_function(name)
        if definition is not None:
            found[name] = definition
            pending += called_functions(definition)
    return found


def register_function(definition: ProtoMessage) -> bool:
    """Make a function known to the eager runtime again, if it was dropped with the `tf.function` that made it.

    Return whether it was.
    """
    from tensorflow.python.eager import context

    current = context.context()
    if current.has_function(definition.signature.name):
        return False
    current.add_function_def(definition)
    return True


def drop_function(definition: ProtoMessage) -> None:
    """Drop a function from the eager runtime that `register_function` made known."""
    from tensorflow.python.eager import context

    context.context().remove_function(definition.signature.name)


def parse_function(data: bytes) -> ProtoMessage:
    """Parse the definition of a compiled function."""
    from tensorflow.core.framework import function_pb2

    return function_pb2.FunctionDef.FromString(data)


def variable_shape(handle: Tensor) -> list[int | None] | None:
    """Return the shape that values of the variable behind a resource must have; None if it is unknown."""
    shape = handle._handle_data.shape_and_type[0].shape
    if shape.unknown_rank:
        return None
    return [None if one.size < 0 else int(one.size) for one in shape.dim]


def variable_dtype(handle: Tensor) -> DType | None:
    """Return the type of the values of the variable behind a resource; None if the resource is something else."""
    import tensorflow as tf

    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    return tf.as_dtype(data.shape_and_type[0].dtype)
