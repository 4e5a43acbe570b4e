"""A traced step as a list of pure instructions: what it reads, what it computes, and the new values of its variables.

A trace reads and assigns variables in the order of the program. Here, a variable is a value that goes in and a value
that comes out, and the functions that a step calls are replaced by their contents. So two steps can be compared
instruction by instruction, and one step can be computed for many members at once (`stacked_step`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from stoker.tf_internals.graphs import called_graph, definition
from stoker.tf_internals.types import Array, ConcreteFunction, DType, Graph, Operation, ProtoMessage, Tensor

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
# Ops that return their inputs.
_ALIASES = ("Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot")
_ADDING = {"AssignAddVariableOp": "AddV2", "AssignSubVariableOp": "Sub"}
# Attributes of an op without effect on its results: where it ran, and what TensorFlow noted on it.
_UNIMPORTANT = ("_class", "_output_shapes", "_has_manual_control_dependencies")


class NotFlat(Exception):
    """The step cannot be turned into pure instructions; the message says why."""


@dataclass(frozen=True)
class Instruction:
    """One op, with the numbers of the values that it takes and of those that it returns.

    Attributes:
        kind: the op's type, such as "MatMul".
        attributes: the attributes of the op, for making it again.
        key: kind, attributes, inputs and outputs, for comparing.
        value: the value of a "Const".
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, ProtoMessage]
    dtypes: tuple[DType, ...]
    key: tuple[object, ...]
    value: Array | None = None


def has_same_bits(one: Array, other: Array) -> bool:
    """Return whether two constants are the same bit by bit. Python objects, such as strings, need only be equal."""
    if one.dtype == object:
        return bool(np.array_equal(one, other))
    return one.tobytes() == other.tobytes()


@dataclass
class FlatStep:
    """A step without side effects.

    Attributes:
        instructions: the instructions, in an order in which they can be computed.
        batch: the numbers of the values that are the tensors of the batch.
        reads: by the name of a variable, the number of its value before the step.
        updates: by the name of a variable, the number of its new value.
        outputs: the numbers of what the step returns, flat.
        structure: the structure that the step returns, with tensors in the places of the outputs.
        shapes: the shape of every value, as far as the trace knows it.
    """

    instructions: list[Instruction] = field(default_factory=list)
    batch: list[int] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    updates: dict[str, int] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    structure: object = None
    shapes: list[tf.TensorShape] = field(default_factory=list)

    def difference(self, other: FlatStep) -> str | None:
        """Return how another step differs in more than the values of constants; None if it does not."""
        for mine, theirs in zip(self.instructions, other.instructions, strict=False):
            if mine.key != theirs.key:
                return f"{mine.kind} here, {theirs.kind} there"
        if len(self.instructions) != len(other.instructions):
            return f"{len(self.instructions)} operations here, {len(other.instructions)} there"
        sides = [
            (one.batch, one.reads, one.updates, one.outputs, [str(shape) for shape in one.shapes])
            for one in (self, other)
        ]
        return None if sides[0] == sides[1] else "the same operations on other variables"


@dataclass(frozen=True)
class _Resource:
    """A variable as it passes through the functions of a step."""

    name: str


def flatten_step(concrete: ConcreteFunction, names: Mapping[int, str]) -> FlatStep:
    """Turn a traced step into pure instructions.

    Args:
        concrete: the traced step.
        names: the name of every variable that the step may use, by the id of its handle.

    Raises:
        NotFlat: the step uses anything else, or has effects other than assigning variables.
    """
    return _Flattening(concrete, names).flat


class _Flattening:
    def __init__(self, concrete: ConcreteFunction, names: Mapping[int, str]) -> None:
        self.flat = FlatStep()
        self._current: dict[str, int] = {}
        graph = concrete.graph
        captured = {_place(inner): outer for outer, inner in graph.captures}
        given: list[int | _Resource] = []
        for one in graph.inputs:
            outer = captured.get(_place(one))
            if outer is None:
                self.flat.batch.append(self._new_value(one.shape))
                given.append(self.flat.batch[-1])
            elif one.dtype == tf.resource:
                given.append(self._variable(outer, names))
            else:
                given.append(self._constant(_read(outer), one.shape, one.dtype))
        flat = self._walk(graph, given)
        self.flat.outputs = [_value(one) for one in flat]
        self.flat.structure = concrete.structured_outputs
        self.flat.updates = {
            name: number for name, number in self._current.items() if self.flat.reads[name] != number
        }

    def _new_value(self, shape: tf.TensorShape) -> int:
        self.flat.shapes.append(shape)
        return len(self.flat.shapes) - 1

    def _variable(self, handle: Tensor, names: Mapping[int, str]) -> _Resource:
        name = names.get(id(handle))
        if name is None:
            raise NotFlat("it uses a table or a variable that the model does not own")
        return _Resource(name)

    def _constant(self, value: Array, shape: tf.TensorShape, dtype: DType) -> int:
        number = self._new_value(shape)
        key = ("Const", dtype.name, value.shape, number)
        self.flat.instructions.append(Instruction("Const", (), (number,), {}, (dtype,), key, value))
        return number

    def _walk(self, graph: Graph, given: Sequence[int | _Resource]) -> list[int | _Resource]:
        """Take in all ops of a graph; return the graph's outputs."""
        known = dict(zip(map(_place, graph.inputs), given, strict=True))
        for op in graph.get_operations():
            if op.type == "Placeholder" and _place(op.outputs[0]) in known:
                continue
            if any(_place(one) not in known for one in op.inputs):
                # The gradient of a loop adds inputs to the loop that are made after it.
                raise NotFlat(f"{op.type} takes a value that is computed after it")
            taken = [known[_place(one)] for one in op.inputs]
            for out, number in zip(op.outputs, self._take_in(op, taken), strict=True):
                known[_place(out)] = number
        return [known[_place(one)] for one in graph.outputs]

    def _take_in(self, op: Operation, taken: list[int | _Resource]) -> Sequence[int | _Resource]:
        if op.type == "NoOp":
            return ()
        if op.type in _ALIASES:
            return taken
        if op.type == "Const":
            return (
                self._constant(
                    tf.make_ndarray(op.get_attr("value")), op.outputs[0].shape, op.outputs[0].dtype
                ),
            )
        if op.type in _CALLS:
            graph = called_graph(op)
            if graph is None:
                raise NotFlat("TensorFlow has not kept a function that it calls")
            return self._walk(graph, taken)
        if taken and isinstance(taken[0], _Resource):
            return self._use_variable(op, taken[0].name, taken)
        if any(isinstance(one, _Resource) for one in taken):
            raise NotFlat(f"{op.type} uses variables")
        known = definition(op.type)
        attributes = {name: one for name, one in op.node_def.attr.items() if name not in _UNIMPORTANT}
        if known is None or known.is_stateful:
            raise NotFlat(f"{op.type} has effects")
        if any(one.HasField("func") or one.list.func for one in attributes.values()):
            raise NotFlat(f"{op.type} calls functions")
        return self._add(op.type, [_value(one) for one in taken], attributes, op.outputs)

    def _use_variable(self, op: Operation, name: str, taken: list[int | _Resource]) -> Sequence[int]:
        if name not in self._current:
            self.flat.reads[name] = self._current[name] = self._new_value(tf.TensorShape(None))
        value = self._current[name]
        if op.type == "ReadVariableOp":
            if self.flat.shapes[value].rank is None:
                self.flat.shapes[value] = op.outputs[0].shape
            return (value,)
        if op.type == "AssignVariableOp":
            self._current[name] = _value(taken[1])
            return ()
        if op.type in _ADDING:
            summand = op.inputs[1]
            attributes = {"T": op.node_def.attr["dtype"]}
            (self._current[name],) = self._add(
                _ADDING[op.type], [value, _value(taken[1])], attributes, [summand]
            )
            return ()
        if op.type == "ResourceGather" and not op.get_attr("batch_dims"):
            axis = self._constant(np.array(0, np.int32), tf.TensorShape([]), tf.int32)
            attributes = {
                "Tparams": op.node_def.attr["dtype"],
                "Tindices": op.node_def.attr["Tindices"],
                "Taxis": tf.compat.v1.AttrValue(type=tf.int32.as_datatype_enum),
            }
            return self._add("GatherV2", [value, _value(taken[1]), axis], attributes, op.outputs)
        raise NotFlat(f"{op.type} works on a variable")

    def _add(
        self,
        kind: str,
        inputs: Sequence[int],
        attributes: Mapping[str, ProtoMessage],
        outputs: Sequence[Tensor],
    ) -> tuple[int, ...]:
        numbers = tuple(self._new_value(one.shape) for one in outputs)
        written = tuple(sorted((name, one.SerializeToString()) for name, one in attributes.items()))
        key = (kind, written, tuple(inputs), numbers)
        dtypes = tuple(one.dtype for one in outputs)
        self.flat.instructions.append(Instruction(kind, tuple(inputs), numbers, attributes, dtypes, key))
        return numbers


def _place(tensor: Tensor) -> tuple[str, int]:
    """Return the position of the tensor in its graph."""
    return tensor.op.name, tensor.value_index


def _value(taken: int | _Resource) -> int:
    if isinstance(taken, _Resource):
        raise NotFlat("it returns a variable")
    return taken


def _read(outer: Tensor) -> Array:
    read: Callable[[], Array] | None = getattr(outer, "numpy", None)
    if read is None:
        raise NotFlat("it captures a value of another graph")
    return np.asarray(read())
