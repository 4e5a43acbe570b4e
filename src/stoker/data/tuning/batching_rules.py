"""Rules that rewrite each operation on an element for a batch; `value_rules` has those that work value by value.

`EXACT` names the operations that compute the same bits for every shape, because they round each value at most once. The
others may differ in the last place between an element and a batch, because TensorFlow computes short and long arrays in
different ways.
"""

from __future__ import annotations

import tensorflow as tf

from stoker.data.array_types import Array
from stoker.data.tuning import value_rules
from stoker.data.tuning.emitting import Emitter, GraphValue, NotProven, Rule, may_round
from stoker.tf_internals.graphs import called_graph
from stoker.tf_internals.types import Operation, Tensor


def _take_first(op: Operation, found: list[GraphValue]) -> GraphValue:
    """Return the first argument, which belongs to the element; the others must be the same for all elements."""
    if any(value.row for value in found[1:]):
        raise NotProven(f"{op.type} with arguments that differ between elements")
    return found[0]


def _shift(axis: int) -> int:
    """Return an axis after a batch dimension is added; an axis that counts from the end stays."""
    return axis if axis < 0 else axis + 1


def _read_static(op: Operation, number: int) -> Array:
    value: Array | None = tf.get_static_value(op.inputs[number])
    if value is None:
        raise NotProven(f"{op.type} along an axis that is computed")
    return value


def _axis_at(number: int, row: int = 0) -> Rule:
    """Return the rule of an operation with the row at one place and its axis, or axes, at another."""

    def rule(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
        if [value.row for value in found] != [place == row for place in range(len(found))]:
            raise NotProven(f"{op.type} with arguments that differ between elements")
        axes = _read_static(op, number)
        tensors = [value.tensor for value in found]
        moved = [_shift(int(one)) for one in axes.ravel()]
        tensors[number] = tf.reshape(tf.constant(moved, found[number].tensor.dtype), axes.shape)
        return emitter.same(op, tensors)

    return rule


def _attribute_axis(name: str) -> Rule:
    """Return the rule of an operation on several tensors along an axis that is an attribute."""

    def rule(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
        rows = [emitter.as_row(value) for value in found]
        return emitter.same(op, rows, **{name: _shift(int(op.get_attr(name)))})

    return rule


def _concat(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    axis = _shift(int(_read_static(op, len(found) - 1)))
    rows = [emitter.as_row(value) for value in found[:-1]]
    return emitter.same(op, [*rows, tf.constant(axis, found[-1].tensor.dtype)])


def _one_hot(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    _take_first(op, found)
    return emitter.same(op, [value.tensor for value in found], axis=_shift(int(op.get_attr("axis"))))


def _squeeze(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    dims = [int(one) for one in op.get_attr("squeeze_dims")]
    if not dims:
        if not found[0].shape.is_fully_defined():
            raise NotProven("Squeeze of an unknown shape")
        dims = [number for number, length in enumerate(found[0].shape) if length == 1]
        if not dims:
            return [tf.identity(found[0].tensor)]
    return emitter.same(op, [found[0].tensor], squeeze_dims=[_shift(one) for one in dims])


def _reshape(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    row = _take_first(op, found)
    shape = found[1].tensor
    return [tf.reshape(row.tensor, tf.concat([[tf.cast(emitter.batch, shape.dtype)], shape], 0))]


def _broadcast_to(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    row = _take_first(op, found)
    shape = found[1].tensor
    wide = emitter.widen(row, int(_rank(op)))
    return [tf.broadcast_to(wide, tf.concat([[tf.cast(emitter.batch, shape.dtype)], shape], 0))]


def _rank(op: Operation) -> int:
    rank = op.outputs[0].shape.rank
    if rank is None:
        raise NotProven(f"{op.type} to an unknown rank")
    return int(rank)


def _prefix(*prefixes: int | list[int], **attributes: int) -> Rule:
    """Return the rule of an operation whose arguments after the row have a value for each dimension.

    Args:
        prefixes: by argument, the value for the batch dimension.
        attributes: the operation's attributes that change.
    """

    def rule(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
        row = _take_first(op, found)
        forms = [value.tensor for value in found[1:]]
        for number, prefix in enumerate(prefixes):
            forms[number] = tf.concat([tf.constant([prefix], forms[number].dtype), forms[number]], 0)
        return emitter.same(op, [row.tensor, *forms], **attributes)

    return rule


def _transpose(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    row, order = _take_first(op, found), found[1].tensor
    return emitter.same(op, [row.tensor, tf.concat([tf.zeros([1], order.dtype), order + 1], 0)])


def _strided_slice(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    masks = {
        name: int(op.get_attr(name)) << 1
        for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask", "begin_mask", "end_mask")
    }
    masks["begin_mask"] |= 1
    masks["end_mask"] |= 1
    return _prefix(0, 0, 1, **masks)(emitter, op, found)


def _gather(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    if found[2].row:
        raise NotProven("GatherV2 along an axis that differs between elements")
    axis, dims = int(_read_static(op, 2)), int(op.get_attr("batch_dims"))
    params, indices = found[0], found[1]
    if not params.row:
        if axis != 0 or dims:
            raise NotProven("GatherV2 from a table along an inner axis")
        return emitter.same(op, [value.tensor for value in found])
    # Axes counted from the end would belong to indices that include the batch dimension.
    if dims < 0 or (dims and not indices.row):
        raise NotProven("GatherV2 with batch dimensions")
    moved = tf.constant(_shift(axis), found[2].tensor.dtype)
    dims = dims + 1 if indices.row else 0
    return emitter.same(op, [params.tensor, indices.tensor, moved], batch_dims=dims)


def _shape(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    """Return the shape of an element, which is the same for all elements if it is known."""
    shape = found[0].shape
    if not shape.is_fully_defined():
        raise NotProven(f"{op.type} of an unknown shape")
    dtype = op.outputs[0].dtype
    known = {"Shape": shape.as_list(), "Size": shape.num_elements(), "Rank": shape.rank}[op.type]
    return [GraphValue(tf.constant(known, dtype), False, op.outputs[0].shape)]


def _lookup(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    table, keys, default = found
    if table.row or default.row or default.rank:
        raise NotProven("a lookup with a default that differs between elements")
    return emitter.same(op, [table.tensor, keys.tensor, default.tensor])


def _parse_example(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    if op.get_attr("num_sparse") or op.get_attr("ragged_value_types") or found[0].rank:
        raise NotProven("parsing of sparse or ragged features")
    return value_rules.unary(emitter, op, found)


def _string_join(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    if len({value.rank for value in found if value.row}) > 1 or any(v.rank for v in found if not v.row):
        raise NotProven("StringJoin of different shapes")
    return emitter.same(op, [value.tensor for value in found])


def _add_n(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    return emitter.same(op, [emitter.as_row(value) for value in found])


def _clip(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    if any(value.rank for value in found[1:]):
        raise NotProven("ClipByValue between tensors")
    return value_rules.unary(emitter, op, found)


def _call(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    """Rewrite a call of another function by rewriting that function's graph in place."""
    graph = called_graph(op)
    if graph is None:
        raise NotProven("a call of a function whose graph is not kept")
    return list(emitter.run(graph, found))


_EXACT_RULES: dict[str, Rule] = {
    **value_rules.EXACT,
    **dict.fromkeys(["Shape", "Size", "Rank"], _shape),
    **dict.fromkeys(["Pad", "PadV2", "MirrorPad"], _prefix([0, 0])),
    **dict.fromkeys(["All", "Any"], _axis_at(1)),
    **dict.fromkeys(["PartitionedCall", "StatefulPartitionedCall"], _call),
    "BroadcastTo": _broadcast_to,
    "ConcatV2": _concat,
    "DecodeCSV": value_rules.unary,
    "ExpandDims": _axis_at(1),
    "GatherV2": _gather,
    "LookupTableFindV2": _lookup,
    "OneHot": _one_hot,
    "Pack": _attribute_axis("axis"),
    "ParseExampleV2": _parse_example,
    "Reshape": _reshape,
    "ReverseV2": _axis_at(1),
    "Slice": _prefix(0, -1),
    "Split": _axis_at(0, row=1),
    "SplitV": _axis_at(2),
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "StringJoin": _string_join,
    "Tile": _prefix(1),
    "Transpose": _transpose,
    "Unpack": _attribute_axis("axis"),
}
_ROUNDED_RULES: dict[str, Rule] = {
    "AddN": may_round(_add_n),
    **value_rules.ROUNDED,
    **dict.fromkeys(["ArgMax", "ArgMin", "Max", "Mean", "Min", "Prod", "Sum"], may_round(_axis_at(1))),
    "ClipByValue": may_round(_clip),
}
RULES: dict[str, Rule] = _EXACT_RULES | _ROUNDED_RULES
# Operations that TensorFlow's own conversion may use without changing a bit.
EXACT = frozenset(_EXACT_RULES) | {"Const", "NoOp", "Placeholder", "Range"}
