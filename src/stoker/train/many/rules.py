"""The ops that are computed once for a stack of members, with the same bits as each member's own op.

A rule returns the stacked outputs of an op, or None if it cannot promise the same bits; then the op is computed once
for each member. The rules rest on these facts about processors:

- an op that rounds once (sum, product, quotient, root) gives the same result wherever an element stands;
- exp, log and similar ops round differently in the last elements, fewer than a vector register, than in the others:
  they are stacked if the members' values fill whole registers;
- a reduction over a member's own axes adds up as it does alone.

Products of matrices have no rule: oneDNN's batched product takes 45 us to begin with, and a small product 2 us.

`tests/train/many/test_rules.py` compares the bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from stoker.tf_internals.graphs import make_op
from stoker.tf_internals.types import Tensor
from stoker.train.many.flat_step import Instruction
from stoker.train.many.member_values import MemberValue

Rule = Callable[[Instruction, Sequence[MemberValue]], list[Tensor] | None]

# More elements than the widest vector register holds, for the narrowest type in which these functions are computed.
_REGISTER = 32
# A reduction over more elements may be divided among threads.
_LARGEST_REDUCTION = 65536

_ONE_ROUNDING = """
    Abs Add AddV2 BitwiseAnd BitwiseOr BitwiseXor Cast Ceil DivNoNan Equal Floor FloorDiv FloorMod
    Greater GreaterEqual IsFinite IsInf IsNan LeakyRelu LeakyReluGrad Less LessEqual LogicalAnd
    LogicalNot LogicalOr Maximum Minimum Mul MulNoNan Neg NotEqual OnesLike RealDiv Relu Relu6
    Relu6Grad ReluGrad Rint Round SelectV2 Sign Sqrt Square SquaredDifference Sub TruncateDiv
    TruncateMod ZerosLike LeftShift RightShift
"""
_REGISTERS = """
    Acos Asin Atan Cos Cosh Digamma Elu EluGrad Erf Erfc Exp Expm1 Inv Lgamma Log Log1p Pow
    Reciprocal Rsqrt RsqrtGrad Selu SeluGrad Sigmoid SigmoidGrad Sin Sinh Softplus SoftplusGrad
    Softsign SoftsignGrad SqrtGrad Tan Tanh TanhGrad Xlogy Xdivy
"""


def _elementwise(instruction: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    ranks = [one.rank for one in inputs]
    if None in ranks:
        return None
    rank = max(one for one in ranks if one is not None)
    return make_op(
        instruction.kind, [one.align(rank) for one in inputs], instruction.attributes, instruction.dtypes
    )


def _in_registers(instruction: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    # The product is known only of the inner dimensions, since the number of rows may be open.
    largest = max(one.size for one in inputs)
    return _elementwise(instruction, inputs) if largest % _REGISTER == 0 else None


def _add_bias(instruction: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    if instruction.attributes["data_format"].s not in (b"", b"NHWC") or inputs[0].rank is None:
        return None
    rank = inputs[0].rank
    return [tf.raw_ops.AddV2(x=inputs[0].align(rank), y=inputs[1].align(rank))]


def _reduce(instruction: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    given, axes = inputs
    where = None if not axes.is_shared else tf.get_static_value(axes.shared)
    if where is None or given.rank is None or given.size > _LARGEST_REDUCTION:
        return None
    moved = tf.constant([int(axis) % max(given.rank, 1) + 1 for axis in where.reshape(-1)], axes.shared.dtype)
    return make_op(instruction.kind, [given.stack(), moved], instruction.attributes, instruction.dtypes)


def _reshape(instruction: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    given, shape = inputs
    if not shape.is_shared:
        return None
    static = tf.get_static_value(shape.shared)
    if static is not None:
        return [tf.reshape(given.stack(), [given.count, *(int(size) for size in static)])]
    leading = tf.constant([given.count], shape.shared.dtype)
    return [tf.reshape(given.stack(), tf.concat([leading, shape.shared], 0))]


def _transpose(_: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    given, order = inputs
    where = None if not order.is_shared else tf.get_static_value(order.shared)
    if where is None:
        return None
    return [tf.transpose(given.stack(), [0, *(int(axis) + 1 for axis in where)])]


def _expand(_: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    given, axis = inputs
    where = None if not axis.is_shared else tf.get_static_value(axis.shared)
    if where is None:
        return None
    place = int(where.reshape(-1)[0])
    return [tf.expand_dims(given.stack(), place if place < 0 else place + 1)]


def _squeeze(instruction: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    places = list(instruction.attributes["squeeze_dims"].list.i)
    if not places:
        return None
    return [tf.squeeze(inputs[0].stack(), [place if place < 0 else place + 1 for place in places])]


def _tile(_: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    given, times = inputs
    if not times.is_shared:
        return None
    return [tf.tile(given.stack(), tf.concat([tf.constant([1], times.shared.dtype), times.shared], 0))]


def _broadcast(_: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    given, shape = inputs
    if not shape.is_shared or given.rank is None or shape.shared.shape.rank is None:
        return None
    rank = shape.shared.shape[0]
    if rank is None:
        return None
    leading = tf.constant([given.count], shape.shared.dtype)
    return [tf.broadcast_to(given.align(rank), tf.concat([leading, shape.shared], 0))]


def _add_many(instruction: Instruction, inputs: Sequence[MemberValue]) -> list[Tensor] | None:
    if any(one.is_shared for one in inputs):
        return None
    stacks = [one.stack() for one in inputs]
    return make_op(instruction.kind, stacks, instruction.attributes, instruction.dtypes)


RULES: dict[str, Rule] = {
    **dict.fromkeys(_ONE_ROUNDING.split(), _elementwise),
    **dict.fromkeys(_REGISTERS.split(), _in_registers),
    **dict.fromkeys(("Sum", "Mean", "Max", "Min", "Prod", "All", "Any"), _reduce),
    "AddN": _add_many,
    "BiasAdd": _add_bias,
    "BroadcastTo": _broadcast,
    "ExpandDims": _expand,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
}
