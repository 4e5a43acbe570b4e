"""Methods of tensors and ndarrays."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source import reads
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.values import UNKNOWN, Api, Array, Py, Seq, Tensor, Value

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_REDUCTIONS = frozenset(
    {"mean", "sum", "max", "min", "std", "var", "prod", "item", "argmax", "argmin", "all", "any"}
)
_ASSIGN = frozenset({"assign", "assign_add", "assign_sub", "scatter_nd_update", "scatter_update"})
# Methods that change only the shape, and keep what is known of pixels and labels.
_SAME = frozenset({"reshape", "copy", "flatten", "ravel", "squeeze", "transpose", "repeat"})


def tensor_method(m: Machine, owner: Tensor, name: str, node: ast.Call) -> Value:
    """Call a method of a tensor or variable."""
    if name == "numpy":
        reads.read(m, node, owner, "is read with .numpy()")
        return Array(dtype=owner.dtype)
    if name in _ASSIGN:
        m.note("+assigns")
        m.work(strong=False)
        if m.pending and not m.tapes:
            m.note("+applies")
            m.apply_gradients()
        return owner
    if name in ("read_value", "value", "gpu", "cpu", "to_tensor", "bounding_shape"):
        return Tensor(host=owner.host, ragged=name == "to_tensor" or owner.ragged)
    if name == "get_shape":
        return Py("object")
    if name in ("item", "tolist"):
        reads.read(m, node, owner, f"is read with .{name}()")
        return Py("object")
    return UNKNOWN


def array_method(owner: Array, name: str, arguments: Arguments) -> Value:
    """Call a method of an ndarray."""
    if name == "astype":
        dtype = dtype_name(arguments.get(0, "dtype"))
        return Array(dtype, owner.pixels, owner.labels, _compute_size_as(owner, dtype))
    if name in _SAME:
        return owner
    if name in _REDUCTIONS and not arguments.positional and "axis" not in arguments.named:
        return Py("object", varies=True)
    if name == "tolist":
        return Seq("list")
    return Array(dtype=owner.dtype)


_WIDTHS = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "uint8": 1, "bool": 1}


def _compute_size_as(owner: Array, dtype: str) -> int:
    if owner.size <= 0:
        return owner.size
    return owner.size * _WIDTHS.get(dtype, 4) // _WIDTHS.get(owner.dtype, 8)


def dtype_name(value: Value | None) -> str:
    """Return a dtype's name: `float64` for `tf.float64`, `np.float64`, `"float64"` and `float`."""
    if isinstance(value, Api):
        last = value.name.rsplit(".", 1)[-1]
        return {"float": "float64", "double": "float64", "half": "float16"}.get(last, last)
    if isinstance(value, Py) and isinstance(value.const, str):
        return value.const
    return ""


def array_size(shape: Value | None, dtype: str) -> int:
    """Return the bytes of an array of this shape, or 0 if the shape is not literal."""
    items = shape.items if isinstance(shape, Seq) else (shape,) if isinstance(shape, Py) else None
    if not items:
        return 0
    size = _WIDTHS.get(dtype, 8)
    for item in items:
        if not isinstance(item, Py) or not isinstance(item.const, int):
            return 0
        size *= item.const
    return size
