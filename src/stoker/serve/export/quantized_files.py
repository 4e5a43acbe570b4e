"""Ways to quantise a function for LiteRT, and how far off each one's answers are on held-out rows."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.serve.batching import Run
from stoker.serve.bundle import SIGNATURE, BundleError
from stoker.serve.engines import litert
from stoker.serve.signature import Array, Field

_MOST_CALIBRATED, _MOST_HELD_OUT = 256, 512
MANY = 32
# How long each way is timed, in seconds of CPU time.
_TIMED_S = 0.05
# Of more layers than this, successive ones are tried in groups.
_MOST_GROUPS = 24
# How small a file must be, relative to the float file, to be worth keeping layers in float.
_WORTH = 0.9
_ALL, _BY_ROW, _SOME = "weights and activations", "weights, activations by row", "some layers"


@dataclass(frozen=True)
class Quantization:
    """The quantisation that was asked for.

    Attributes:
        kind: "int8" or "float16".
        bound: how far an answer may be off, as a share of the largest value of its output.
        inputs: real rows, an array for each input; every second row calibrates, the others are held out.
    """

    kind: str
    bound: float
    inputs: list[Array]

    @property
    def calibration(self) -> list[Array]:
        """The rows to calibrate with."""
        return [one[::2][:_MOST_CALIBRATED] for one in self.inputs]

    @property
    def held_out(self) -> list[Array]:
        """The rows to prove the bound on."""
        return [one[1::2][:_MOST_HELD_OUT] for one in self.inputs]


@dataclass(frozen=True)
class QuantizedCandidate:
    """One way: the file's content, what is quantised, how far off its answers are, and which layers stay in float."""

    content: bytes
    scheme: str
    off: float
    layers: int = 0
    float_layers: tuple[str, ...] = ()


def largest_of(values: Array) -> float:
    """Return the largest absolute value of an output; 0 if it does not hold floats."""
    if values.dtype.kind != "f":
        return 0.0
    return float(np.abs(values.astype(np.float64)).max(initial=0.0))


class QuantizedFiles:
    """Converts one function in several ways."""

    def __init__(
        self,
        directory: str,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        held_out: list[Array],
        wanted: list[Array],
        asked: Quantization,
    ) -> None:
        self._directory, self._inputs, self._outputs = directory, inputs, outputs
        self._held_out, self._wanted, self._asked = held_out, wanted, asked

    def convert(self, prepare: Callable[[Any], None] = lambda converter: None) -> bytes:
        """Return the content of a LiteRT file."""
        with _quiet():
            content: bytes = self._converter(prepare).convert()
        return content

    def _converter(self, prepare: Callable[[Any], None]) -> Any:
        converter = tf.lite.TFLiteConverter.from_saved_model(self._directory, [SIGNATURE])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        prepare(converter)
        return converter

    def find_float16(self) -> QuantizedCandidate:
        """Return a file whose weights have half the size."""

        def prepare(converter: Any) -> None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.target_spec.supported_types = [tf.float16]

        found = self._judge(self.convert(prepare), "weights")
        self._require(found)
        return found

    def find_int8(self, plain: bytes) -> QuantizedCandidate:
        """Return the first way that keeps the bound."""
        whole = self._judge(self.convert(self._calibrate), _ALL)
        if self._holds(whole):
            return whole
        by_row = self._judge(self.convert(_use_default), _BY_ROW)
        if self._holds(by_row):
            return by_row
        mixed = self._leave_layers(plain)
        if mixed is None:
            self._require(min(whole, by_row, key=lambda one: one.off))
        return mixed or by_row

    def _calibrate(self, converter: Any) -> None:
        rows = self._asked.calibration

        def represent() -> Iterator[dict[str, Array]]:
            for row in range(len(rows[0])):
                yield {
                    field.tensor: one[row : row + 1] for field, one in zip(self._inputs, rows, strict=True)
                }

        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = represent
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.TFLITE_BUILTINS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS,
        ]  # fmt: skip

    def _leave_layers(self, plain: bytes) -> QuantizedCandidate | None:
        """Quantise only some layers: add them one by one, the one that saves most first, while the bound holds."""
        try:
            with _quiet():
                debugger, names = self._open_debugger(plain)
        except (ValueError, RuntimeError):  # LiteRT cannot even measure the layers
            return None

        def attempt(chosen: Sequence[str]) -> QuantizedCandidate:
            left = tuple(name for name in names if name not in chosen)
            try:
                with _quiet():
                    debugger.options = _debug_options(denylisted_nodes=list(left))
                    content = debugger.get_nondebug_quantized_model()
            except (ValueError, RuntimeError):  # then nothing of it is quantised
                return QuantizedCandidate(plain, _SOME, np.inf)
            return self._judge(content, _SOME, len(names), left)

        size = -(-len(names) // _MOST_GROUPS) or 1
        groups = [names[first : first + size] for first in range(0, len(names), size)]
        alone = [(group, attempt(group)) for group in groups]
        chosen: list[str] = []
        best: QuantizedCandidate | None = None
        for group, one in sorted(alone, key=lambda pair: len(pair[1].content)):
            if not self._holds(one):
                continue
            found = attempt([*chosen, *group]) if chosen else one
            if self._holds(found):
                chosen += group
                best = found
        return best if best is not None and len(best.content) <= _WORTH * len(plain) else None

    def _open_debugger(self, plain: bytes) -> tuple[Any, list[str]]:
        """Return TensorFlow's debugger of quantised models, and the names of the layers that it can leave in float."""
        order = litert.input_order(plain, self._inputs)
        row = [self._asked.calibration[place][:1] for place in order]
        debugger = tf.lite.experimental.QuantizationDebugger(
            converter=self._converter(self._calibrate),
            debug_dataset=lambda: iter([row]),
            debug_options=_debug_options(),
        )
        debugger.run()
        told = io.StringIO()
        debugger.layer_statistics_dump(told)
        return debugger, [one["tensor_name"] for one in csv.DictReader(io.StringIO(told.getvalue()))]

    def _judge(
        self, content: bytes, scheme: str, layers: int = 0, left: tuple[str, ...] = ()
    ) -> QuantizedCandidate:
        try:
            answers, off = self._load(content)(self._held_out), 0.0
        except (ValueError, RuntimeError):  # LiteRT does not take every ratio of ranges
            return QuantizedCandidate(content, scheme, np.inf, layers, left)
        for found, wanted in zip(answers, self._wanted, strict=True):
            if wanted.dtype.kind != "f" or not np.isfinite(found).all():
                off = max(off, 0.0 if np.array_equal(found, wanted) else np.inf)
                continue
            distance = float(np.abs(found.astype(np.float64) - wanted).max(initial=0.0))
            off = max(off, distance / (largest_of(wanted) or 1.0))
        return QuantizedCandidate(content, scheme, off, layers, left)

    def _holds(self, one: QuantizedCandidate) -> bool:
        return one.off <= self._asked.bound

    def _require(self, best: QuantizedCandidate) -> None:
        if not self._holds(best):
            raise BundleError(
                f"{self._asked.kind}: an answer is off by {best.off:.2g} of its output's largest value, and the bound "
                f"is {self._asked.bound:g}: export without it, or raise --bound"
            )

    def _load(self, content: bytes) -> Run:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "model.tflite")
            file.write_bytes(content)
            return litert.load(file, self._inputs, self._outputs)

    def compare_times(self, plain: bytes, content: bytes) -> list[float]:
        """Return how many times quicker than float the file is, in CPU time: for one row and for several."""
        before, after = self._load(plain), self._load(content)
        found = []
        for rows in (1, MANY):
            given = [np.resize(one, (rows, *one.shape[1:])) for one in self._held_out]
            found.append(_seconds(before, given) / _seconds(after, given))
        return found


def _debug_options(**options: Any) -> Any:
    return tf.lite.experimental.QuantizationDebugOptions(**options)


def _use_default(converter: Any) -> None:
    converter.optimizations = [tf.lite.Optimize.DEFAULT]


def _seconds(run: Run, given: list[Array]) -> float:
    """Return the CPU time of a call: the least of three stretches, as other programs only add to it."""
    run(given)
    least = np.inf
    for _ in range(3):
        began, calls = time.thread_time(), 0
        while (took := time.thread_time() - began) < _TIMED_S:
            run(given)
            calls += 1
        least = min(least, took / calls)
    return float(least)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence TensorFlow's quantiser, which writes past Python's streams, and its warnings."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)
