"""The inputs and outputs of a SavedModel's signature, and whether a call of it changes anything."""

from __future__ import annotations

import re

import tensorflow as tf

from stoker.serve.bundle import BundleError
from stoker.serve.signature import TensorField
from stoker.tf_internals import graphs
from stoker.tf_internals.types import ProtoMessage

# TensorFlow's own signatures.
_INTERNAL = ("__saved_model_init_op", "__saved_model_train_op")
_NO_VALUES = frozenset({"resource", "variant"})
# Stateful operations that only read their state, or whose bodies are inspected.
_READING = re.compile(
    r"Placeholder\w*|Variable(V2)?|VarHandleOp|ReadVariableOp|VarIsInitializedOp|VariableShape|ResourceGather(Nd)?"
    r"|(Mutable)?(Dense)?HashTable(OfTensors)?(V2)?|LookupTable(Find|Size|Export)(V2)?"
    r"|(Stateful)?PartitionedCall|If|While|Case|Assert|GuaranteeConst|TensorArray\w*|Stack(Push|Pop|Close)?V2"
)


def list_signatures(meta: ProtoMessage) -> dict[str, ProtoMessage]:
    """Return the signatures that can be called: those whose tensors have values."""
    found = {}
    for name, one in meta.signature_def.items():
        infos = [*one.inputs.values(), *one.outputs.values()]
        plain = all(info.WhichOneof("encoding") == "name" and _dtype_name(info) for info in infos)
        if name not in _INTERNAL and one.outputs and plain:
            found[name] = one
    return found


def read_fields(infos: ProtoMessage) -> tuple[TensorField, ...]:
    """Return the inputs or outputs of a signature, in the order of their names."""
    return tuple(
        TensorField(
            name, _dtype_name(infos[name]), (None,), infos[name].name, declared=_declared(infos[name])
        )
        for name in sorted(infos)
    )


def _dtype_name(info: ProtoMessage) -> str:
    """Return the type of a tensor; "" if it has no values that a request could hold."""
    try:
        name = str(tf.as_dtype(info.dtype).base_dtype.name)
    except TypeError:
        return ""
    return "" if name in _NO_VALUES else name


def _declared(info: ProtoMessage) -> tuple[int | None, ...] | None:
    if info.tensor_shape.unknown_rank:
        return None
    return tuple(None if one.size < 0 else int(one.size) for one in info.tensor_shape.dim)


def leaves_rows_free(fields: tuple[TensorField, ...]) -> bool:
    """Return whether every field has a first dimension, and none fixes its size."""
    return bool(fields) and all((one.declared or (0,))[0] is None for one in fields)


def only_reads(meta: ProtoMessage, outputs: list[str]) -> bool:
    """Return whether computing these tensors changes no variable, table or file, and draws no random numbers."""
    nodes = {node.name: node for node in meta.graph_def.node}
    functions = {one.signature.name: one for one in meta.graph_def.library.function}
    seen: set[str] = set()
    waiting = [graphs.get_node_name(one) for one in outputs]
    called: list[str] = []
    while waiting:
        name = waiting.pop()
        if name in seen or name not in nodes:
            continue
        seen.add(name)
        if not _node_reads(nodes[name], functions, called):
            return False
        waiting += map(graphs.get_node_name, nodes[name].input)
    known: set[str] = set()
    while called:
        name = called.pop()
        if name not in known:
            known.add(name)
            if not all(_node_reads(node, functions, called) for node in functions[name].node_def):
                return False
    return True


def _node_reads(node: ProtoMessage, functions: dict[str, ProtoMessage], called: list[str]) -> bool:
    """Return whether a node only reads. The functions that it calls are added to `called`."""
    called += [name for name in graphs.list_callees(node) if name in functions]
    definition = graphs.definition(node.op)
    if definition is None:
        return node.op in functions
    if any(one.is_ref for one in definition.input_arg):
        return False
    return not definition.is_stateful or _READING.fullmatch(node.op) is not None


def require_signatures(found: dict[str, ProtoMessage], place: object) -> None:
    """Refuse a model without signatures."""
    if not found:
        raise BundleError(f"{place} has no signature that can be called: save it with signatures=...")
