"""Run `model.onnx` with ONNX Runtime, which takes any number of rows and callers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stoker.errors import first_line
from stoker.serve.batching import Run
from stoker.serve.signature import Array, Field

_ONLY_ERRORS = 3


def load(file: Path, inputs: Sequence[Field], outputs: Sequence[Field]) -> Run:
    """Load the file.

    Raises:
        ValueError, RuntimeError: the file cannot be loaded, or takes other inputs.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ONLY_ERRORS
    # One thread finishes a row before others would have begun.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's own errors have no narrower base class
        lacking = re.search(r"No Op registered for (\w+)", str(error))
        raise ValueError(f"ONNX Runtime has no {lacking[1]}" if lacking else first_line(error)) from error
    named = [field.tensor for field in inputs]
    given = {one.name for one in session.get_inputs()}
    if given != set(named):
        raise ValueError(f"it takes {', '.join(sorted(given))} instead of {', '.join(named)}")
    wanted = [field.tensor for field in outputs]

    def run(arrays: list[Array]) -> list[Array]:
        found: list[Array] = session.run(wanted, dict(zip(named, arrays, strict=True)))
        return found

    return run
