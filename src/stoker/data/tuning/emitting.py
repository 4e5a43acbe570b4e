"""Rewrite the graph of a function with a leading batch dimension for everything that belongs to an element.

A tensor that belongs to the element gets a batch dimension in the new graph; any other tensor stays as it is. An
operation on tensors of the element needs a rule (`batching_rules`) that writes it for a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import tensorflow as tf

from stoker.tf_internals.types import Graph, Operation, ProtoMessage, Tensor, TensorShape


class NotProven(Exception):
    """The reason why a function of an element cannot be proven to do the same to a batch."""


@dataclass(frozen=True)
class GraphValue:
    """A tensor of the new graph.

    Attributes:
        tensor: the tensor, with a leading batch dimension if it belongs to the element.
        row: whether it belongs to the element.
        shape: the shape of the tensor in the old graph.
    """

    tensor: Tensor
    row: bool
    shape: TensorShape

    @property
    def rank(self) -> int:
        """The rank in the old graph."""
        if self.shape.rank is None:
            raise NotProven("a tensor of unknown rank")
        return int(self.shape.rank)


# Takes an operation and its inputs and returns its outputs: tensors, or values that do not belong to the element.
Rule = Callable[["Emitter", Operation, list[GraphValue]], list[Tensor]]


class Emitter:
    """Rewrites a graph for batches.

    Args:
        rules: how to write operations on elements for batches, by the type of the operation.
        batch: the size of the batch, as a tensor.
    """

    def __init__(self, rules: Mapping[str, Rule], batch: Tensor) -> None:
        self._rules = rules
        self.batch = batch
        # Whether everything so far gives the same bits.
        self.exact = True

    def run(self, graph: Graph, given: list[GraphValue]) -> list[GraphValue]:
        """Return the outputs of a graph for these inputs, which include captured ones."""
        values = {source.ref(): value for source, value in zip(graph.inputs, given, strict=True)}
        for op in graph.get_operations():
            if op.type in ("Placeholder", "NoOp"):
                continue
            found = [values[one.ref()] for one in op.inputs]
            row = any(value.row for value in found)
            if row and op.type not in self._rules:
                raise NotProven(f"no rule for {op.type}")
            made = self._rules[op.type](self, op, found) if row else self.same(op, [v.tensor for v in found])
            for old, new in zip(op.outputs, made, strict=True):
                values[old.ref()] = new if isinstance(new, GraphValue) else _value(new, row, old.shape)
        return [values[one.ref()] for one in graph.outputs]

    def same(self, op: Operation, tensors: list[Tensor], **attributes: int | list[int]) -> list[Tensor]:
        """Apply the same operation to other tensors."""
        attrs = {name: value for name, value in op.node_def.attr.items() if not name.startswith("_")}
        for name, value in attributes.items():
            attrs[name] = _attribute(value)
        graph = tf.compat.v1.get_default_graph()
        made = graph.create_op(
            op.type, tensors, [one.dtype for one in op.outputs], attrs=attrs, op_def=op.op_def
        )
        return list(made.outputs)

    def as_row(self, value: GraphValue) -> Tensor:
        """Return the tensor with a batch dimension, repeated if it did not belong to the element."""
        if value.row:
            return value.tensor
        shape = tf.concat([[self.batch], tf.shape(value.tensor)], 0)
        return tf.broadcast_to(value.tensor[tf.newaxis], shape)

    def align(self, values: list[GraphValue]) -> list[Tensor]:
        """Return tensors whose dimensions line up for broadcasting, as those of the elements did."""
        rank = max(value.rank for value in values)
        return [self.widen(value, rank) if value.row else value.tensor for value in values]

    def widen(self, value: GraphValue, rank: int) -> Tensor:
        """Return a tensor of elements with dimensions of one after the batch, up to this rank of an element."""
        missing = rank - value.rank
        if not missing:
            return value.tensor
        shape = tf.shape(value.tensor)
        return tf.reshape(value.tensor, tf.concat([shape[:1], [1] * missing, shape[1:]], 0))


def _value(tensor: Tensor, row: bool, shape: TensorShape) -> GraphValue:
    if row and shape.rank is not None:
        tensor.set_shape([None, *shape])
    return GraphValue(tensor, row, shape)


def may_round(rule: Rule) -> Rule:
    """Mark the rule of an operation that may round floats differently in a batch."""

    def note(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
        if not op.inputs[0].dtype.is_integer:
            emitter.exact = False
        return rule(emitter, op, found)

    return note


def _attribute(value: int | list[int]) -> ProtoMessage:
    """Return a Python value as a node's attribute."""
    made = tf.compat.v1.AttrValue()
    if isinstance(value, int):
        made.i = value
    else:
        made.list.i.extend(value)
    return made
