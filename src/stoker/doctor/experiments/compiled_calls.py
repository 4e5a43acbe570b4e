"""Calls of the program's own compiled functions, repeated the way a program calls a `tf.function`."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.doctor.experiments.checking import check_rebuilt
from stoker.doctor.experiments.rebuilding import Rebuilt, check_repeatable, holds_random_op
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedStep, is_handle
from stoker.tf_internals import recorded_ops
from stoker.tf_internals.types import Tensor


def rebuild_call(step: RecordedStep, call: RecordedOp, fitted: Sequence[Tensor] | None = None) -> Rebuilt:
    """Rebuild a recorded call: data are arguments, handles are captured. `fitted` replaces the call's inputs."""
    inputs = [step.values[number] for number in call.inputs] if fitted is None else fitted
    return compile_call(step, call, call.name, inputs)


def compile_call(step: RecordedStep, call: RecordedOp, name: str, inputs: Sequence[Tensor]) -> Rebuilt:
    """Compile a call of the function `name` whose results have the form of those of a recorded call."""
    import tensorflow as tf

    outputs = [step.values[number] for number in call.outputs]

    def body(*data: Tensor) -> list[Tensor]:
        left = iter(data)
        given = [tensor if is_handle(tensor) else next(left) for tensor in inputs]
        return recorded_ops.add_op(name, given, (), outputs)

    data = tuple(tensor for tensor in inputs if not is_handle(tensor))
    return Rebuilt(tf.function(body, autograph=False), data, call.outputs)


def check_call(step: RecordedStep, call: RecordedOp, rebuilt: Rebuilt) -> None:
    """Check that a call can be repeated and gives the same result again. Random results cannot be checked.

    Raises:
        CannotRebuildStep: the call cannot be repeated, or gives something else.
    """
    check_repeatable(call, step)
    if not holds_random_op(call, step.functions):
        check_rebuilt(step, [call], rebuilt)


def fit_to_shapes(inputs: Sequence[Tensor], shapes: recorded_ops.Shapes) -> list[Tensor]:
    """Return the inputs, cut off or repeated along each dimension. An input without a known shape stays as it is."""
    import tensorflow as tf

    fitted = []
    for tensor, shape in zip(inputs, shapes, strict=True):
        if shape is not None and not is_handle(tensor) and tensor.shape.rank == len(shape):
            for axis, size in enumerate(shape):
                if 0 < int(tensor.shape[axis]) != size:
                    tensor = tf.gather(tensor, tf.range(size) % int(tensor.shape[axis]), axis=axis)
        fitted.append(tensor)
    return fitted
