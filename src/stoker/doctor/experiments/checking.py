"""Check that a rebuilt step computes the same as the recorded one; set and restore the variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from stoker.doctor.experiments.rebuilding import (
    CannotRebuildStep,
    Rebuilt,
    check_repeatable,
    is_input,
    is_random,
    replay,
)
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedStep, is_handle, read_variables
from stoker.tf_internals import recorded_ops
from stoker.tf_internals.types import Tensor

# How far a value may be off, as a share of the largest value of its tensor: kernels are fused and sums reordered.
_ROUNDING = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-3, "float64": 1e-6, "complex64": 2e-3}

# How many elements of the variables may differ, as a share. A bias before a normalisation has no gradient but rounding
# errors, which Adam makes as large as any other gradient.
_MOST_OFF = 0.02
# The absolute size of such rounding errors where nothing enlarges them.
_NOISE = 1e-7

State = Sequence[tuple[Tensor, Tensor]]


def set_variables(state: State) -> None:
    """Set variables to these values."""
    for handle, value in state:
        attributes = ("dtype", value.dtype.as_datatype_enum, "validate_shape", False)
        recorded_ops.run_op("AssignVariableOp", [handle, value], attributes, 0)


@contextmanager
def variables_put_back(step: RecordedStep) -> Iterator[None]:
    """Restore the step's variables to their present values after the block, whatever happens in it."""
    current = read_variables(step.handles())
    try:
        yield
    finally:
        set_variables(current)


@contextmanager
def functions_registered(step: RecordedStep) -> Iterator[None]:
    """Register with TensorFlow, for a block, the compiled functions of the step that the program has dropped."""
    dropped = [one for one in step.functions.values() if recorded_ops.register_function(one)]
    try:
        yield
    finally:
        for definition in dropped:
            recorded_ops.drop_function(definition)


def check_rebuilt(step: RecordedStep, ops: Sequence[RecordedOp], rebuilt: Rebuilt) -> None:
    """Run the rebuilt ops from the recorded state, and compare all results and written variables with the recording.

    Raises:
        CannotRebuildStep: the rebuilt ops compute something else.
    """
    set_variables(step.before)
    _run_earlier_ops(step, ops)
    given = rebuilt()
    for number, tensor in zip(rebuilt.outputs, given, strict=True):
        if not is_same(step.values[number], tensor):
            raise CannotRebuildStep("the rebuilt step gives different values")
    written = _written_only_by(step, ops)
    off = total = 0
    current = read_variables(handle for handle, _ in step.after)
    for (handle, expected), (_, now) in zip(step.after, current, strict=True):
        if id(handle) in written:
            total += int(expected.shape.num_elements())
            off += count_differing(expected, now)
    if off > total * _MOST_OFF:
        raise CannotRebuildStep("the rebuilt step updates the variables differently")


def _run_earlier_ops(step: RecordedStep, ops: Sequence[RecordedOp]) -> None:
    """Bring the variables from the state at the beginning of the step to the state that these ops found."""
    own = {id(op) for op in ops}
    earlier: list[RecordedOp] = []
    for op in step.ops():
        if id(op) in own:
            break
        earlier.append(op)
    again = _needed_for(step, ops, earlier)
    for op in again:
        check_repeatable(op, step)
    if again:
        replay(step, again)()


def _needed_for(
    step: RecordedStep, ops: Sequence[RecordedOp], earlier: Sequence[RecordedOp]
) -> list[RecordedOp]:
    """Return the earlier ops that may have written a variable of these ops, and all that they depend on, in order.

    Batches and random numbers are taken from the recording.
    """
    needed: list[RecordedOp] = []
    handles = {number for op in ops for number in op.inputs if is_handle(step.values[number])}
    wanted: set[int] = set()
    for op in reversed(earlier):
        if is_input(op) or is_random(op):
            continue
        writes = op.name != "ReadVariableOp" and not handles.isdisjoint(op.inputs)
        if writes or not wanted.isdisjoint(op.outputs):
            wanted.update(op.inputs)
            handles.update(number for number in op.inputs if is_handle(step.values[number]))
            needed.append(op)
    return needed[::-1]


def _written_only_by(step: RecordedStep, ops: Sequence[RecordedOp]) -> set[int]:
    """Return the handles, by id, that only these ops of the step take."""
    own = {id(op) for op in ops}
    mine: set[int] = set()
    others: set[int] = set()
    for op in step.ops():
        if op.name != "ReadVariableOp":
            (mine if id(op) in own else others).update(id(step.values[number]) for number in op.inputs)
    return mine - others


def is_same(expected: Tensor, given: Tensor) -> bool:
    """Return whether two tensors are the same except for rounding."""
    if expected.dtype != given.dtype or expected.shape != given.shape:
        return False
    return count_differing(expected, given) == 0


def count_differing(expected: Tensor, given: Tensor) -> int:
    """Return how many elements of two tensors of the same type and shape differ by more than rounding."""
    tolerance = _ROUNDING.get(expected.dtype.name)
    if tolerance is None:
        return 0 if is_handle(expected) else int(np.sum(expected.numpy() != given.numpy()))
    wanted, got = (np.asarray(t.numpy(), dtype=np.complex128) for t in (expected, given))
    finite = np.abs(wanted[np.isfinite(wanted)])
    largest = float(finite.max()) if finite.size else 0.0
    close = np.isclose(got, wanted, rtol=tolerance, atol=tolerance * largest + _NOISE, equal_nan=True)
    return int(np.sum(~close))
