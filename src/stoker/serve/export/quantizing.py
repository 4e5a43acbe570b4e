"""Quantise for LiteRT: smaller weights and quicker arithmetic, as long as a bound on the answers holds.

"int8" tries these in order, and takes the first that keeps the bound on rows it was not calibrated with:

1. weights and activations, with ranges from the calibration rows;
2. weights, and activations with ranges computed for each row;
3. as 1, with the layers that move the answers most left in float.

"float16" halves the weights; the arithmetic stays float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.serve.export.quantized_files import MANY, Quantization, QuantizedFiles, largest_of
from stoker.serve.rows import as_rows
from stoker.serve.signature import Array, Field
from stoker.tf_internals.types import ConcreteFunction
from stoker.units import quantity

KINDS = ("int8", "float16")
BOUND = 0.01
_LEAST_ROWS = 20


class QuantizationReport(TypedDict):
    """The part of a bundle's description about a quantised engine.

    `off`, `bound`: shares of an output's largest value. `allowed`: the bound by output. `bytes`: of the float file and
    of this one. `times_quicker`: for one row and for several.
    """

    kind: str
    scheme: str
    bound: float
    off: float
    held_out_rows: int
    layers: int
    float_layers: list[str]
    allowed: dict[str, float]
    bytes: list[int]
    times_quicker: list[float]


@dataclass(frozen=True)
class Quantized:
    """A quantised model, and what is known about it."""

    content: bytes
    report: QuantizationReport


def read_quantization(kind: str, bound: float, fields: Sequence[Field], given: object) -> Quantization | None:
    """Check what was asked for; return None if nothing was.

    Raises:
        ArgumentError: the request makes no sense, or there are too few rows.
    """
    if not kind:
        return None
    if kind not in KINDS:
        raise ArgumentError(f"quantize={kind!r} is not one of {', '.join(KINDS)}")
    if not 0 < bound < 1:
        raise ArgumentError(f"bound={bound!r} must be more than 0 and less than 1")
    need = (
        f"{kind} needs {_LEAST_ROWS} real rows to calibrate and to prove the bound: "
        "give calibrate= (--calibrate FILE)"
    )
    if given is None:
        raise ArgumentError(need)
    if isinstance(given, tf.data.Dataset):
        raise ArgumentError("calibrate takes rows, not a dataset")
    rows = as_rows(fields, given)
    if rows.count < _LEAST_ROWS:
        raise ArgumentError(f"{need}, got {rows.count}")
    return Quantization(kind, bound, list(rows.arrays))


def quantize(
    function: ConcreteFunction,
    directory: str,
    inputs: Sequence[Field],
    outputs: Sequence[Field],
    recorded: Sequence[Array],
    asked: Quantization,
) -> Quantized:
    """Quantise the function that is saved in the directory.

    Args:
        function: the function to quantise.
        directory: where the function is saved.
        inputs, outputs: those of the function.
        recorded: the inputs of the recorded examples, for which the bound must hold, too.
        asked: what was asked for.

    Raises:
        BundleError: the bound cannot be kept.
    """
    held_out = [np.concatenate(pair) for pair in zip(asked.held_out, recorded, strict=True)]
    given = {one.tensor: tf.constant(array) for one, array in zip(inputs, held_out, strict=True)}
    answers = function(**given)
    wanted = [np.asarray(answers[one.tensor]) for one in outputs]
    allowed = [largest_of(one) * asked.bound for one in wanted]
    work = QuantizedFiles(directory, inputs, outputs, held_out, wanted, asked)
    plain = work.convert()
    found = work.find_float16() if asked.kind == "float16" else work.find_int8(plain)
    report: QuantizationReport = {
        "kind": asked.kind,
        "scheme": found.scheme,
        "bound": asked.bound,
        "off": found.off,
        "held_out_rows": len(held_out[0]),
        "layers": found.layers,
        "float_layers": list(found.float_layers),
        "allowed": {one.name: most for one, most in zip(outputs, allowed, strict=True)},
        "bytes": [len(plain), len(found.content)],
        "times_quicker": work.compare_times(plain, found.content),
    }
    return Quantized(found.content, report)


def describe(report: QuantizationReport) -> str:
    """Describe the outcome in one line."""
    left = f", {len(report['float_layers'])} of {quantity(report['layers'], 'layer')} in float" * bool(
        report["float_layers"]
    )
    one, many = report["times_quicker"]
    gains = f"{one:.2f}x for one row, {many:.2f}x for {MANY}"
    speed = (
        f"{gains}, compared with float on LiteRT"
        if max(one, many) > 1.1
        else f"no quicker than float here ({gains})"
    )
    plain, size = (f"{value / 1024:,.0f} KiB" for value in report["bytes"])
    return (
        f"{report['kind']} ({report['scheme']}{left}): off by at most {report['off']:.2g} of an output's largest value "
        f"(bound {report['bound']:g}) on {report['held_out_rows']} held-out rows; {size} instead of {plain}; {speed}"
    )
