"""Models converted into another engine's file. Their labels are made from the scores here, not in the file.

Running one needs no TensorFlow.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from stoker.errors import first_line
from stoker.serve.batching import Run
from stoker.serve.bundle import CONVERTED, Bundle, BundleError
from stoker.serve.engines import litert, onnx
from stoker.serve.signature import Array, Field
from stoker.units import quantity

FILES = CONVERTED
RUNTIMES = {"litert": "ai_edge_litert", "onnx": "onnxruntime"}
# Each loads an engine from a file, given the inputs and the outputs.
LOADERS: dict[str, Callable[[Path, Sequence[Field], Sequence[Field]], Run]] = {
    "litert": litert.load,
    "onnx": onnx.load,
}
_LABEL, _SCORES = "label", "scores"


def names_of(known: Bundle) -> list[str]:
    """List the engines that the bundle has files for."""
    return list(known.description.get("engines") or {})


def allowed_of(known: Bundle, name: str) -> dict[str, float]:
    """Return how far a quantised engine's answers may be off, by output; empty for any other engine."""
    entry = (known.description.get("engines") or {}).get(name)
    quantized = entry.get("quantized") if isinstance(entry, dict) else None
    allowed = quantized.get("allowed") if isinstance(quantized, dict) else None
    if not isinstance(allowed, dict):
        return {}
    return {str(output): float(most) for output, most in allowed.items() if isinstance(most, int | float)}


def is_installed(name: str) -> bool:
    """Return whether the engine's runtime is installed."""
    return importlib.util.find_spec(RUNTIMES[name]) is not None


def computed_outputs(known: Bundle) -> list[Field]:
    """List the outputs that the file gives: all but the label."""
    return [one for one in known.signature.outputs if known.labels is None or one.name != _LABEL]


def load_engine(known: Bundle, name: str) -> Run:
    """Load an engine with its file.

    Raises:
        BundleError: the engine has no file, or its runtime is not installed or cannot load the file.
    """
    if name not in names_of(known):
        raise BundleError(f"{known.path} has no {FILES[name]}: export it with engines=[{name!r}]")
    if not is_installed(name):
        raise BundleError(f"engine {name!r} needs {RUNTIMES[name]}: pip install 'stoker[{name}]'")
    outputs = computed_outputs(known)
    file = known.path / FILES[name]
    try:
        run = LOADERS[name](file, known.signature.inputs, outputs)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise BundleError(f"{file} cannot be loaded: {first_line(error)}") from None
    return add_labels(run, known)


def add_labels(run: Run, known: Bundle) -> Run:
    """Add the label to the engine's outputs if the bundle has labels."""
    if known.labels is None:
        return run
    outputs = computed_outputs(known)
    scores = next((one for one in outputs if one.name == _SCORES), None)
    if scores is None or scores.shape[-1:] != (len(known.labels),):
        raise BundleError(
            f"{known.path} is damaged: it has {quantity(len(known.labels), 'label')}, but not a score for each"
        )
    words = np.array([word.encode("utf-8") for word in known.labels], dtype=object)
    order = [one.name for one in known.signature.outputs]

    def whole(arrays: list[Array]) -> list[Array]:
        found = dict(zip((one.name for one in outputs), run(arrays), strict=True))
        found[_LABEL] = words[found[_SCORES].argmax(-1)]
        return [found[name] for name in order]

    return whole
