"""Calls of NumPy: what they make, and the tensors that they read."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source import reads
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.tensors import array_size, dtype_name
from stoker.doctor.check.source.values import UNKNOWN, Array, Py, Seq, Tensor, Thing, Value

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_REDUCTIONS = frozenset(
    {
        "mean",
        "sum",
        "max",
        "min",
        "std",
        "var",
        "prod",
        "argmax",
        "argmin",
        "median",
        "all",
        "any",
        "amax",
        "amin",
    }
)
_SHAPED = frozenset({"zeros", "ones", "empty", "full"})
_RANDOM_SHAPED = frozenset({"rand", "randn"})
_NO_READ = frozenset({"shape", "ndim", "isscalar", "dtype", "finfo", "iinfo", "result_type", "save", "load"})
_KEEPING = frozenset(
    {"array", "asarray", "expand_dims", "reshape", "squeeze", "ascontiguousarray", "copy", "repeat"}
)
# Functions that turn a number into a number.
_ELEMENTWISE = frozenset(
    {
        "abs",
        "ceil",
        "clip",
        "cos",
        "exp",
        "floor",
        "log",
        "log10",
        "log2",
        "maximum",
        "minimum",
        "power",
        "round",
        "sign",
        "sin",
        "sqrt",
        "square",
        "tanh",
    }
)
_SCALARS = frozenset({"float32", "float64", "int32", "int64", "float16", "bool_", "uint8", "float_", "int_"})


def call(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a NumPy function."""
    short = name.removeprefix("np.")
    last = short.rsplit(".", 1)[-1]
    if last not in _NO_READ:
        _read(m, name, node, arguments)
    if last in _SCALARS or short in ("random.seed",):
        return Py("object")
    if last in _REDUCTIONS and "axis" not in arguments.named and len(arguments.positional) == 1:
        return Py("object", varies=True)
    if short.startswith("random."):
        return _random(last, arguments)
    if last in _SHAPED:
        dtype = dtype_name(arguments.get(2 if last == "full" else 1, "dtype")) or "float64"
        return Array(dtype, size=array_size(arguments.get(0, "shape"), dtype))
    if last == "memmap" or (last == "load" and isinstance(arguments.const(1, "mmap_mode"), str)):
        return Array(size=-1)
    if last == "load":
        return UNKNOWN
    first = arguments.get(0, "") or UNKNOWN
    if last in _KEEPING:
        return _keep(last, first, arguments)
    if last in ("isnan", "isfinite", "isinf") and not isinstance(first, Array):
        return Py("bool", varies=True)
    if last in _ELEMENTWISE and arguments.positional and all(isinstance(v, Py) for v in arguments.values):
        return Py("float", varies=any(isinstance(v, Py) and v.varies for v in arguments.values))
    if last in ("savetxt", "savez", "savez_compressed", "set_printoptions"):
        return UNKNOWN
    return Array()


def _read(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> None:
    for expression, value in arguments.pairs:
        if isinstance(value, Seq):
            reads.note_deep_read(m, node, value, f"is passed to `{name}`")
        elif isinstance(value, Tensor):
            reads.read(
                m, node if expression.lineno == node.lineno else expression, value, f"is passed to `{name}`"
            )


def _keep(last: str, first: Value, arguments: Arguments) -> Value:
    dtype = dtype_name(arguments.get(1 if last in ("array", "asarray") else 99, "dtype"))
    if isinstance(first, Py):
        return Py("object", varies=first.varies)
    if isinstance(first, Array):
        return Array(dtype or first.dtype, first.pixels, first.labels, first.size)
    if isinstance(first, Seq):
        items = first.items or (first.element,)
        if all(isinstance(item, Py) and item.type == "str" for item in items):
            return Array("string")
    return Array(dtype)


def generate(name: str, arguments: Arguments) -> Value:
    """Call a method of NumPy's random generators: it returns an array if a size is given, else one number."""
    if name in ("shuffle", "seed", "bit_generator"):
        return UNKNOWN
    shape = arguments.get(0, "size") if name in ("random", "standard_normal") else arguments.get(2, "size")
    if shape is None and name not in ("permutation", "choice", "rand", "randn"):
        return Py("object", varies=True)
    dtype = dtype_name(arguments.get(99, "dtype")) or (
        "int64" if name in ("integers", "randint") else "float64"
    )
    return Array(dtype, size=array_size(shape, dtype))


def _random(last: str, arguments: Arguments) -> Value:
    if not arguments.positional and not arguments.named:
        return Py("float", varies=True)
    if last in _RANDOM_SHAPED:
        shape = Seq("tuple", items=arguments.by_position)
        return Array("float64", size=array_size(shape, "float64"))
    if last in ("random", "random_sample"):
        return Array("float64", size=array_size(arguments.get(0, "size"), "float64"))
    sized = "size" in arguments.named or len(arguments.positional) >= 3
    if last in ("normal", "uniform", "randint", "choice"):
        if not sized:
            return Py("object", varies=True)
        dtype = dtype_name(arguments.get(99, "dtype")) or ("int64" if last == "randint" else "float64")
        return Array(dtype, size=array_size(arguments.get(2, "size"), dtype))
    if last in ("RandomState", "default_rng"):
        return Thing("nprng", f"np.random.{last}")
    return Array()
