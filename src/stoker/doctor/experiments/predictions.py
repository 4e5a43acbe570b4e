"""`predict` in a loop: the model's compiled function, called with the same rows.

The program passes NumPy rows and gets NumPy results. So the call in place of `predict` makes a tensor of the rows, and
reads the result. If all rows exist beforehand, one `predict` runs full batches.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from stoker.doctor.experiments.checking import is_same, set_variables
from stoker.doctor.experiments.compiled_calls import check_call, fit_to_shapes, rebuild_call
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, Rebuilt
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedStep
from stoker.doctor.experiments.timing import Way
from stoker.doctor.experiments.trial import RepairTrial, is_at
from stoker.records import Finding
from stoker.tf_internals.types import Tensor

# The default batch size of Keras' `predict`.
_BATCH = 32


def call_in_place_of_predict(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of a call of `predict`'s function; if all rows exist beforehand, their share of a full batch."""
    call = _predicting_call(step, finding)
    rebuilt = rebuild_call(step, call)
    check_call(step, call, rebuilt)
    prepare = partial(set_variables, step.before)
    rows = _rows(rebuilt)
    if not finding.detail.get("rows_are_there") or not 0 < rows < _BATCH:
        return RepairTrial(None, Way(partial(_call_with_arrays, rebuilt, _arrays(rebuilt)), prepare))
    batch = _full_batch(step, call, rows)
    return RepairTrial(
        None, Way(partial(_call_with_arrays, batch, _arrays(batch)), prepare), steps=_BATCH // rows
    )


def _predicting_call(step: RecordedStep, finding: Finding) -> RecordedOp:
    calls = [op for op in step.ops() if op.name in step.functions and is_at(op.stack, finding)]
    if not calls:
        raise CannotRebuildStep("the recorded step does not predict")
    return calls[-1]


def _rows(rebuilt: Rebuilt) -> int:
    """Return the number of rows in a call; 0 if its data has none."""
    sizes = {int(tensor.shape[0]) if tensor.shape.rank else 0 for tensor in rebuilt.arguments}
    return sizes.pop() if len(sizes) == 1 else 0


def _arrays(rebuilt: Rebuilt) -> list[np.ndarray]:
    return [np.array(tensor) for tensor in rebuilt.arguments]


def _call_with_arrays(rebuilt: Rebuilt, arrays: list[np.ndarray]) -> None:
    import tensorflow as tf

    for tensor in rebuilt.function(*(tf.constant(array) for array in arrays)):
        tensor.numpy()


def _full_batch(step: RecordedStep, call: RecordedOp, rows: int) -> Rebuilt:
    """Return the call with the rows repeated, and check its results: it may have been traced for fewer rows."""
    whole = _BATCH // rows * rows
    inputs = [step.values[number] for number in call.inputs]
    batch = rebuild_call(step, call, fit_to_shapes(inputs, tuple(_with_rows(t, whole) for t in inputs)))
    for number, given in zip(call.outputs, batch(), strict=True):
        recorded = step.values[number]
        (expected,) = fit_to_shapes([recorded], (_with_rows(recorded, whole),))
        if not is_same(expected, given):
            raise CannotRebuildStep("the function does not take a full batch")
    return batch


def _with_rows(tensor: Tensor, rows: int) -> tuple[int, ...] | None:
    return (rows, *tensor.shape[1:]) if tensor.shape.rank else None
