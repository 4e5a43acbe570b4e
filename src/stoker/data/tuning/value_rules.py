"""Operations that work value by value, written for a batch of elements: only broadcasting has to be minded."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from stoker.data.tuning.emitting import Emitter, NotProven, Rule, Value

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
# Zeros of either sign, NaN and numbers next to zero come out differently in short and in long arrays.
_UNARY_ORDERED, _BINARY_ORDERED = ["Relu", "Relu6", "Sign"], ["Maximum", "Minimum"]


def exact_cast(source: Any, target: Any) -> bool:
    """Whether a cast is defined for every value; of a float that does not fit, the array's length decides."""
    return not (source.is_floating and target.is_integer and target not in (tf.int32, tf.int64))


def _unary(emitter: Emitter, op: Any, found: list[Value]) -> list[Any]:
    if not found[0].row or any(value.row for value in found[1:]):
        raise NotProven(f"{op.type} with arguments that belong to the element")
    return emitter.same(op, [value.tensor for value in found])


def _unary_rounded(emitter: Emitter, op: Any, found: list[Value]) -> list[Any]:
    if not op.outputs[0].dtype.is_integer:
        emitter.exact = False
    return _unary(emitter, op, found)


def _broadcasting(emitter: Emitter, op: Any, found: list[Value]) -> list[Any]:
    if op.outputs[0].dtype.is_complex:
        emitter.exact = False
    return emitter.same(op, emitter.aligned(found))


def _broadcasting_rounded(emitter: Emitter, op: Any, found: list[Value]) -> list[Any]:
    if not op.outputs[0].dtype.is_integer:
        emitter.exact = False
    return _broadcasting(emitter, op, found)


def _cast(emitter: Emitter, op: Any, found: list[Value]) -> list[Any]:
    if not exact_cast(op.get_attr("SrcT"), op.get_attr("DstT")):
        emitter.exact = False
    return emitter.same(op, [found[0].tensor])


EXACT: dict[str, Rule] = {
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(["RegexFullMatch", "RegexReplace"], _unary),
    **dict.fromkeys(_BINARY, _broadcasting),
}
ROUNDED: dict[str, Rule] = {
    **dict.fromkeys(_UNARY_ROUNDED + _UNARY_ORDERED, _unary_rounded),
    **dict.fromkeys(_BINARY_ROUNDED + _BINARY_ORDERED, _broadcasting_rounded),
    "Cast": _cast,
}
