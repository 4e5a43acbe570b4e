"""Writing the graph of a function again, with a leading batch dimension on everything that belongs to an element.

Every tensor either belongs to the element, and has the batch before its own dimensions in the new graph, or it does
not, and is what it was. An operation on tensors of elements needs a rule (`batching_rules`) that says how it is
written for a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf


class NotProven(Exception):
    """Why a function of an element is not known to do the same to a batch."""


@dataclass(frozen=True)
class Value:
    """A tensor of the new graph.

    Attributes:
        tensor: with a leading batch dimension if it belongs to the element.
        row: whether it does.
        shape: of the tensor in the old graph.
    """

    tensor: Any
    row: bool
    shape: Any

    @property
    def rank(self) -> int:
        """The rank in the old graph."""
        if self.shape.rank is None:
            raise NotProven("a tensor of unknown rank")
        return int(self.shape.rank)


# Takes the operation and its inputs, returns its outputs: tensors, or values where they do not belong to the element.
Rule = Callable[["Emitter", Any, list[Value]], list[Any]]


class Emitter:
    """Writes a graph again, for batches."""

    def __init__(self, rules: Mapping[str, Rule], batch: Any) -> None:
        """Start.

        Args:
            rules: how operations on elements are written for batches.
            batch: how many elements the batch has, as a tensor.
        """
        self._rules = rules
        self.batch = batch
        # Whether everything written so far gives the same bits.
        self.exact = True

    def run(self, graph: Any, given: list[Value]) -> list[Value]:
        """The outputs of a graph for these inputs (the captured ones included)."""
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
                values[old.ref()] = new if isinstance(new, Value) else _value(new, row, old.shape)
        return [values[one.ref()] for one in graph.outputs]

    def same(self, op: Any, tensors: list[Any], **attributes: Any) -> list[Any]:
        """The same operation on other tensors."""
        attrs = {name: value for name, value in op.node_def.attr.items() if not name.startswith("_")}
        for name, value in attributes.items():
            attrs[name] = _attribute(value)
        graph = tf.compat.v1.get_default_graph()
        made = graph.create_op(
            op.type, tensors, [one.dtype for one in op.outputs], attrs=attrs, op_def=op.op_def
        )
        return list(made.outputs)

    def as_row(self, value: Value) -> Any:
        """A tensor for each element, where there was one for all."""
        if value.row:
            return value.tensor
        shape = tf.concat([[self.batch], tf.shape(value.tensor)], 0)
        return tf.broadcast_to(value.tensor[tf.newaxis], shape)

    def aligned(self, values: list[Value]) -> list[Any]:
        """Tensors whose dimensions line up for broadcasting, as those of the elements did."""
        rank = max(value.rank for value in values)
        return [self.widened(value, rank) if value.row else value.tensor for value in values]

    def widened(self, value: Value, rank: int) -> Any:
        """A tensor of elements with ones between the batch and its dimensions, up to this rank of an element."""
        missing = rank - value.rank
        if not missing:
            return value.tensor
        shape = tf.shape(value.tensor)
        return tf.reshape(value.tensor, tf.concat([shape[:1], [1] * missing, shape[1:]], 0))


def _value(tensor: Any, row: bool, shape: Any) -> Value:
    if row and shape.rank is not None:
        tensor.set_shape([None, *shape])
    return Value(tensor, row, shape)


def _attribute(value: Any) -> Any:
    """A Python value as a node's attribute."""
    made = tf.compat.v1.AttrValue()
    if isinstance(value, int):
        made.i = value
    else:
        made.list.i.extend(value)
    return made
