"""Graphs: operations, their definitions and kernels, the functions they call, and the variables and tables they use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stoker.tf_internals.types import (
    ConcreteFunction,
    DType,
    Graph,
    Operation,
    ProtoMessage,
    Tensor,
    Variable,
)

# Operations that run the program's own Python, though not all of them are stateful by definition.
PYTHON_OPS = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})


def new_graph(name: str) -> Graph:
    """Return an empty graph of the kind that `tf.function` traces into: it captures tensors from outside."""
    import tensorflow as tf

    return tf.__internal__.FuncGraph(name)


def graph_type() -> type:
    """Return the class of the graphs that `tf.function` traces into."""
    import tensorflow as tf

    kind: type = tf.__internal__.FuncGraph
    return kind


def called_graphs(graph: Graph) -> list[Graph]:
    """Return the graphs of the functions that a graph calls, as far as TensorFlow has kept them."""
    called = [getattr(function, "graph", None) for function in getattr(graph, "_functions", {}).values()]
    return [one for one in called if one is not None]


def called_graph(op: Operation) -> Graph:
    """Return the graph of the function that an op with an attribute `f` calls; None if TensorFlow has not kept it."""
    return getattr(op.graph._get_function(op.get_attr("f").name), "graph", None)


def get_node_name(tensor: str) -> str:
    """Return the name of the node in a `GraphDef` that makes a tensor, given as a node's input: `^name`, `name:1`."""
    return tensor.removeprefix("^").partition(":")[0]


def list_callees(node: ProtoMessage) -> set[str]:
    """Return the names of what a node of a `GraphDef` may call: functions, and its own type, which may be one."""
    found = {node.op}
    for value in node.attr.values():
        found.add(value.func.name)
        found.update(one.name for one in value.list.func)
    return found


def set_input(op: Operation, number: int, tensor: Tensor) -> None:
    """Replace an input of an op in a graph. The public API can only add to graphs."""
    op._update_input(number, tensor)


def add_control_inputs(op: Operation, awaited: Iterable[Operation]) -> None:
    """Make an existing op of a graph wait for others."""
    op._add_control_inputs(list(awaited))


def make_op(
    kind: str, inputs: Sequence[Tensor], attributes: Mapping[str, ProtoMessage], dtypes: Sequence[DType]
) -> list[Tensor]:
    """Make an op by the name of its kind in the graph that is being traced; return its outputs."""
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    made = graph._create_op_internal(kind, list(inputs), list(dtypes), attrs=dict(attributes))
    return list(made.outputs)


def definition(name: str) -> ProtoMessage:
    """Return an operation's definition: `is_stateful`, `input_arg`, `output_arg`, `attr`; None if there is none."""
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(name)


def kernel_devices(name: str) -> list[str]:
    """Return the kinds of devices for which this build of TensorFlow has a kernel of the operation."""
    from tensorflow.python.framework import kernels

    return [str(kernel.device_type) for kernel in kernels.get_registered_kernels_for_op(name).kernel]


def freeze(concrete: ConcreteFunction) -> ConcreteFunction:
    """Return a concrete function with its variables turned into constants; the public API does so for sessions only."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    return convert_variables_to_constants_v2(concrete)


def make_variable(**options: object) -> Variable:
    """Make a variable directly, without the creators of `tf.variable_creator_scope` that `tf.Variable` calls."""
    from tensorflow.python.ops.resource_variable_ops import ResourceVariable

    return ResourceVariable(**options)


def is_filled_once(thing: object) -> bool:
    """Return whether a value is a lookup table that is filled when it is made and never changes."""
    from tensorflow.python.ops import lookup_ops

    return isinstance(thing, lookup_ops.InitializableLookupTableBase)


def is_resource(thing: object) -> bool:
    """Return whether a value is a table or the like, which a SavedModel keeps for functions that captured it."""
    from tensorflow.python.trackable.resource import CapturableResource

    return isinstance(thing, CapturableResource)


def is_composite(thing: object) -> bool:
    """Return whether a value is ragged, sparse or otherwise made of several tensors."""
    import tensorflow as tf

    return isinstance(thing, tf.__internal__.CompositeTensor)
