"""Rules for operations that work value by value, written for a batch: only broadcasting needs care."""

from __future__ import annotations

import tensorflow as tf

from stoker.data.tuning.emitting import Emitter, GraphValue, NotProven, Rule, may_round
from stoker.tf_internals.types import DType, Operation, Tensor

_UNARY = str.split(
    """Abs Bitcast Bucketize Ceil CheckNumerics DecodeBase64 DecodeRaw EncodeBase64 Floor Identity
    Invert IsFinite IsInf IsNan LogicalNot Neg OnesLike PreventGradient Rint Round Snapshot Sqrt Square
    StaticRegexFullMatch StaticRegexReplace StopGradient StringLength StringLower StringStrip StringToHashBucketFast
    StringToHashBucketStrong StringToNumber StringUpper AsString UnicodeTranscode ZerosLike"""
)
_UNARY_ROUNDED = str.split(
    """Acos Asin Atan Cos Cosh Elu Erf Exp Expm1 LeakyRelu Log Log1p Reciprocal Rsqrt Selu Sigmoid Sin Sinh
    Softplus Softsign Tan Tanh"""
)
_BINARY = str.split(
    """Add AddV2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual
    LeftShift Less LessEqual LogicalAnd LogicalOr Mul NotEqual RealDiv RightShift
    SelectV2 Sub TruncateDiv TruncateMod"""
)
_BINARY_ROUNDED = ["Atan2", "MulNoNan", "Pow", "SquaredDifference", "Xdivy", "Xlogy"]
# Signed zeros, NaN and numbers near zero come out differently in short and in long arrays.
_UNARY_ORDERED, _BINARY_ORDERED = ["Relu", "Relu6", "Sign"], ["Maximum", "Minimum"]


def is_exact_cast(source: DType, target: DType) -> bool:
    """Return whether a cast is defined for every value.

    For a float that does not fit, the result depends on the length.
    """
    return not (source.is_floating and target.is_integer and target not in (tf.int32, tf.int64))


def unary(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    if not found[0].row or any(value.row for value in found[1:]):
        raise NotProven(f"{op.type} with arguments that differ between elements")
    return emitter.same(op, [value.tensor for value in found])


def _broadcast(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    if op.outputs[0].dtype.is_complex:
        emitter.exact = False
    return emitter.same(op, emitter.align(found))


def _cast(emitter: Emitter, op: Operation, found: list[GraphValue]) -> list[Tensor]:
    if not is_exact_cast(op.get_attr("SrcT"), op.get_attr("DstT")):
        emitter.exact = False
    return emitter.same(op, [found[0].tensor])


EXACT: dict[str, Rule] = {
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(["RegexFullMatch", "RegexReplace"], unary),
    **dict.fromkeys(_BINARY, _broadcast),
}
ROUNDED: dict[str, Rule] = {
    **dict.fromkeys(_UNARY_ROUNDED + _UNARY_ORDERED, may_round(unary)),
    **dict.fromkeys(_BINARY_ROUNDED + _BINARY_ORDERED, may_round(_broadcast)),
    "Cast": _cast,
}
